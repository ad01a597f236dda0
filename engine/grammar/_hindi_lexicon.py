"""The words of the parallel English and Hindi sentences, with the gender of every Hindi noun.

Spelling follows common use: the dot below where the sound is another one (ज़, फ़, ड़, ढ़), not in ख and ग.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.grammar._hindi_forms import UNKNOWN, Adjective, Gender, Noun, Verb, with_s


@dataclass(frozen=True)
class Role:
    """Somebody: a role or a name.

    Attributes:
        english: the singular, in small letters.
        plural: the English plural; None for names and who is only one.
        male: the Hindi noun for a man; None where the English word means a woman.
        female: the same for a woman. Where both are there, English does not tell which: it is a man unless "she" or
            "her" says otherwise.
        is_name: whether it stands without an article.
        declines: as in Noun.
        kind: "person" or "animal".
    """

    english: str
    plural: str | None
    male: str | None
    female: str | None
    is_name: bool = False
    declines: bool = True
    kind: str = "person"

    @property
    def is_open(self) -> bool:
        """Whether the English word leaves open if it is a man or a woman."""
        return self.male is not None and self.female is not None

    def noun(self, gender: Gender) -> Noun:
        """Give the noun for a man or a woman."""
        hindi = self.male if gender == "m" else self.female
        return Noun(self.english, self.plural, hindi or UNKNOWN, gender, self.kind, self.declines)


def _roles(*rows: tuple[str, str | None, str | None]) -> tuple[Role, ...]:
    return tuple(Role(english, with_s(english), male, female) for english, male, female in rows)


def _names(gender: Gender, **names: str) -> tuple[Role, ...]:
    return tuple(
        Role(name, None, hindi if gender == "m" else None, hindi if gender == "f" else None, True, False)
        for name, hindi in names.items()
    )


ROLES = (
    *_roles(
        ("boy", "लड़का", None),
        ("girl", None, "लड़की"),
        ("brother", "भाई", None),
        ("sister", None, "बहन"),
        ("queen", None, "रानी"),
        ("prince", "राजकुमार", None),
        ("princess", None, "राजकुमारी"),
        ("nurse", None, "नर्स"),
        ("teacher", "शिक्षक", "शिक्षिका"),
        ("student", "छात्र", "छात्रा"),
        ("writer", "लेखक", "लेखिका"),
        ("singer", "गायक", "गायिका"),
        ("dancer", "नर्तक", "नर्तकी"),
        ("poet", "कवि", "कवयित्री"),
        ("neighbour", "पड़ोसी", "पड़ोसिन"),
        ("gardener", "माली", "मालिन"),
        ("shopkeeper", "दुकानदार", "दुकानदार"),
        ("customer", "ग्राहक", "ग्राहक"),
        ("friend", "दोस्त", "दोस्त"),
        ("doctor", "डॉक्टर", "डॉक्टर"),
        ("farmer", "किसान", "किसान"),
        ("driver", "ड्राइवर", "ड्राइवर"),
        ("guest", "मेहमान", "मेहमान"),
        ("artist", "कलाकार", "कलाकार"),
        ("player", "खिलाड़ी", "खिलाड़ी"),
        ("merchant", "व्यापारी", "व्यापारी"),
        ("soldier", "सैनिक", "सैनिक"),
    ),
    Role("man", "men", "आदमी", None),
    Role("woman", "women", None, "औरत"),
    Role("child", "children", "बच्चा", None),
    Role("king", "kings", "राजा", None, declines=False),
    Role("mother", None, None, "माँ"),
)
ANIMALS = (
    Role("dog", "dogs", "कुत्ता", None, kind="animal"),
    Role("cat", "cats", None, "बिल्ली", kind="animal"),
    Role("horse", "horses", "घोड़ा", None, kind="animal"),
    Role("cow", "cows", None, "गाय", kind="animal"),
    Role("elephant", "elephants", "हाथी", None, kind="animal"),
)
NAMES = (
    *_names("f", asha="आशा", meera="मीरा", priya="प्रिया", anita="अनीता", sita="सीता", gita="गीता", maya="माया"),
    *_names("f", rekha="रेखा", nisha="निशा", mary="मैरी", anna="अन्ना", maria="मारिया"),
    *_names("m", ravi="रवि", arjun="अर्जुन", amit="अमित", rohan="रोहन", vijay="विजय", mohan="मोहन", rahul="राहुल"),
    *_names("m", karan="करण", john="जॉन", peter="पीटर", tom="टॉम", david="डेविड"),
)


def _things(kind: str, gender: Gender, **nouns: str) -> tuple[Noun, ...]:
    return tuple(Noun(english, with_s(english), hindi, gender, kind) for english, hindi in nouns.items())


def _stuff(kind: str, gender: Gender, **nouns: str) -> tuple[Noun, ...]:
    return tuple(Noun(english, None, hindi, gender, kind) for english, hindi in nouns.items())


THINGS = (
    *_things("text", "f", book="किताब", letter="चिट्ठी", poem="कविता", story="कहानी"),
    *_things("text", "m", newspaper="अखबार", lesson="पाठ"),
    *_things("art", "f", picture="तस्वीर", film="फ़िल्म"),
    *_things("art", "m", song="गाना", game="खेल"),
    *_things("food", "m", apple="सेब", mango="आम", banana="केला", orange="संतरा", egg="अंडा", cake="केक"),
    *_things("food", "m", potato="आलू", tomato="टमाटर", fruit="फल"),
    *_things("food", "f", vegetable="सब्ज़ी"),
    *_stuff("food", "f", bread="रोटी", fish="मछली"),
    *_stuff("food", "m", rice="चावल"),
    *_stuff("drink", "m", water="पानी", milk="दूध", juice="रस"),
    *_stuff("drink", "f", tea="चाय", coffee="कॉफ़ी"),
    *_things("tool", "m", pen="पेन", box="डिब्बा", cup="प्याला", bag="थैला", flower="फूल", gift="उपहार"),
    *_things("tool", "m", toy="खिलौना", stone="पत्थर", umbrella="छाता"),
    *_stuff("tool", "m", paper="कागज़"),
    *_things("tool", "f", pencil="पेंसिल", ball="गेंद", plate="थाली", key="चाबी", ring="अँगूठी", clock="घड़ी"),
    *_stuff("tool", "f", medicine="दवा"),
    Noun("knife", "knives", "चाकू", "m", "tool"),
    *_things("cloth", "f", shirt="कमीज़", hat="टोपी", sari="साड़ी"),
    *_things("cloth", "m", shoe="जूता", coat="कोट"),
    *_things("large", "m", door="दरवाज़ा", house="घर", tree="पेड़"),
    *_things("large", "f", window="खिड़की", chair="कुर्सी", table="मेज़", car="कार", bicycle="साइकिल"),
    *_stuff("favour", "f", discount="छूट"),
)
ROOMS = (
    *_stuff("place", "m", garden="बगीचा", house="घर", school="स्कूल", room="कमरा", market="बाज़ार", city="शहर"),
    *_stuff("place", "m", village="गाँव", library="पुस्तकालय", field="खेत", hospital="अस्पताल", temple="मंदिर"),
    *_stuff("place", "m", park="पार्क", forest="जंगल"),
    *_stuff("place", "f", shop="दुकान", kitchen="रसोई"),
)
RIVER = Noun("river", None, "नदी", "f", "place")
SURFACES = (
    *_stuff("place", "f", roof="छत", road="सड़क"),
    *_stuff("place", "m", floor="फ़र्श", bridge="पुल"),
)
FURNITURE = _stuff("place", "f", table="मेज़", chair="कुर्सी")
CONTAINERS = _stuff("place", "m", box="डिब्बा", bag="थैला")
# Where one goes without a postposition; a place in -ा would sound odd.
GOALS = "school market city village library hospital temple park house field"
POSTPOSITIONS = {"in": "में", "on": "पर", "from": "से"}

# An old friend is a friend for long (पुराना), not a friend of age (बूढ़ा).
_AGED = (
    "man woman king queen teacher writer singer poet neighbour gardener shopkeeper doctor farmer driver artist animal"
)
ADJECTIVES = tuple(
    Adjective(*row)
    for row in (
        ("big", "बड़ा", "food tool large place animal"),
        ("small", "छोटा", "food tool cloth large place animal person"),
        ("new", "नया", "text art tool cloth large place person"),
        ("old", "पुराना", "text art tool cloth large place friend"),
        ("old", "बूढ़ा", _AGED),
        ("good", "अच्छा", "text art food drink tool cloth person"),
        ("beautiful", "सुंदर", "art tool cloth large place person animal"),
        ("cheap", "सस्ता", "food tool cloth"),
        ("expensive", "महँगा", "food tool cloth large"),
        ("red", "लाल", "tool cloth large"),
        ("blue", "नीला", "tool cloth large"),
        ("green", "हरा", "tool cloth large"),
        ("yellow", "पीला", "tool cloth large"),
        ("white", "सफ़ेद", "tool cloth large animal"),
        ("black", "काला", "tool cloth large animal"),
        ("long", "लंबा", "text art"),
        ("tall", "लंबा", "person"),
        ("clean", "साफ़", "cloth large place"),
        ("cold", "ठंडा", "drink food"),
        ("hot", "गर्म", "drink rice bread egg potato vegetable"),
        ("sweet", "मीठा", "drink apple mango banana orange fruit cake"),
        ("kind", "दयालु", "person"),
        ("clever", "चतुर", "person animal"),
        ("rich", "अमीर", "person"),
        ("poor", "गरीब", "person"),
        ("happy", "खुश", "person"),
        ("brave", "बहादुर", "person"),
        ("lazy", "आलसी", "person animal"),
        ("hungry", "भूखा", "person animal"),
    )
)
# What somebody is, as a reason: of whoever it is said, of a giver, of a receiver.
STATES = tuple(
    Adjective(*row)
    for row in (
        ("tired", "थका हुआ"),
        ("happy", "खुश"),
        ("clever", "चतुर"),
        ("brave", "बहादुर"),
        ("lonely", "अकेला"),
        ("lazy", "आलसी"),
        ("good", "अच्छा"),
        ("angry", "नाराज़"),
        ("old", "बूढ़ा"),
    )
)
GIVING = tuple(
    Adjective(*row)
    for row in (
        ("generous", "उदार"),
        ("kind", "दयालु"),
        ("rich", "अमीर"),
        ("honest", "ईमानदार"),
        ("friendly", "मिलनसार"),
    )
)
REGULAR = Adjective("regular", "नियमित ग्राहक")  # a noun in English, "is a regular": somebody who often comes
RECEIVING = (
    *(
        Adjective(*row)
        for row in (
            ("hungry", "भूखा"),
            ("thirsty", "प्यासा"),
            ("ill", "बीमार"),
            ("sick", "बीमार"),
            ("sad", "दुखी"),
            ("poor", "गरीब"),
            ("new", "नया"),
        )
    ),
    REGULAR,
)
MINE = Adjective("my", "मेरा")
OWN = "अपना"  # his, her or their own
OTHERS = "उसका"  # his or her, of somebody else
NUMBERS = (Adjective("two", "दो"), Adjective("three", "तीन"))

_GOODS = "book newspaper picture food drink tool cloth chair table car bicycle"
_LENT = "book pen pencil umbrella bicycle car bag knife coat chair"
BUY, BRING, TAKE = (
    Verb("buy", "खरीद", takes=f"{_GOODS} house"),
    Verb("bring", "ला", takes="book letter newspaper food drink tool cloth chair"),
    Verb("take", "ले", takes="book letter newspaper food drink tool cloth"),
)
BORROW = Verb("borrow", "ले", "उधार", _LENT)
PUT = Verb("put", "रख", takes="book letter newspaper food tool cloth")
GO, COME = Verb("go", "जा"), Verb("come", "आ")
DOING = (
    BUY, BRING, TAKE,
    Verb("read", "पढ़", takes="text"),
    Verb("write", "लिख", takes="letter poem story lesson book song"),
    Verb("learn", "सीख", takes="song poem lesson game story"),
    Verb("sing", "गा", takes="song"),
    Verb("hear", "सुन", takes="song poem lesson story"),
    Verb("see", "देख", takes="text art food tool cloth large"),
    Verb("watch", "देख", takes="film game"),
    Verb("eat", "खा", takes="food"),
    Verb("drink", "पी", takes="drink"),
    Verb("cook", "पका", takes="rice vegetable egg fish potato bread"),
    Verb("cut", "काट", takes="apple mango banana orange tomato potato vegetable fruit cake bread paper tree"),
    Verb("make", "बना", takes="tea coffee juice cake bread box toy bag picture shirt chair table"),
    Verb("sell", "बेच", takes=f"{_GOODS} house"),
    Verb("want", "चाह", takes="book food drink tool cloth car bicycle house"),
    Verb("like", "कर", "पसंद", "text art food drink tool cloth large"),
    Verb("choose", "चुन", takes="book story poem art food tool cloth"),
    Verb("wash", "धो", takes="cup plate shirt coat sari shoe car bicycle apple fruit vegetable knife window bag"),
    Verb("clean", "कर", "साफ़", "table chair window door shoe car bicycle house box bag clock cup plate knife"),
    Verb("open", "खोल", takes="door window box bag book letter umbrella gift"),
    Verb("close", "कर", "बंद", "door window box bag book umbrella"),
    Verb("break", "तोड़", takes="cup plate toy clock window chair box pencil"),
    Verb("throw", "फेंक", takes="ball stone paper bag shoe box"),
    Verb("wear", "पहन", takes="cloth ring"),
    Verb("touch", "छू", takes="flower tree ball stone table door window car"),
    Verb("hide", "छिपा", takes="book letter key ring ball toy gift bag knife medicine box"),
    Verb("lift", "उठा", takes="box bag stone chair table bicycle ball cup book"),
    Verb("fix", "कर", "ठीक", "car bicycle chair table door window clock toy umbrella"),
    Verb("forget", "भूल", takes="lesson poem song story letter"),
)  # fmt: skip
MEETING = (
    Verb("see", "देख"),
    Verb("watch", "देख"),
    Verb("know", "जान"),
    Verb("call", "बुला"),
    Verb("teach", "पढ़ा"),
    Verb("like", "कर", "पसंद"),
    Verb("understand", "समझ"),
    Verb("thank", "दे", "धन्यवाद"),
    Verb("wake", "जगा"),
    Verb("stop", "रोक"),
    Verb("love", "कर", "प्यार", postposition="से"),
    Verb("meet", "मिल", postposition="से"),
    Verb("fear", "डर", postposition="से"),
    Verb("help", "कर", "मदद", postposition="की"),
    Verb("praise", "कर", "प्रशंसा", postposition="की"),
    Verb("trust", "कर", "भरोसा", postposition="पर"),
)
HANDING = (
    Verb("give", "दे", takes="book letter newspaper picture food drink tool cloth chair bicycle car discount"),
    Verb("show", "दिखा", takes="book letter newspaper picture film tool cloth car bicycle house"),
    Verb("send", "भेज", takes="book letter newspaper picture flower gift medicine fruit ring key toy poem"),
    Verb("sell", "बेच", takes=f"{_GOODS} house"),
    Verb("lend", "दे", "उधार", _LENT),
    Verb("tell", "सुना", takes="story poem"),
    Verb("teach", "सिखा", takes="song poem lesson game"),
)
# Of these English says "explains the lesson to her" and never "explains her the lesson".
HANDING_TO = (
    Verb("explain", "समझा", takes="lesson poem story game letter"),
    Verb("return", "लौटा", takes="book pen pencil umbrella bicycle bag knife ring key letter ball"),
)
BEING = (
    Verb("sleep", "सो"),
    Verb("play", "खेल"),
    Verb("run", "दौड़"),
    Verb("walk", "चल"),
    Verb("sit", "बैठ"),
    Verb("laugh", "हँस"),
    Verb("cry", "रो"),
    Verb("work", "कर", "काम"),
    Verb("rest", "कर", "आराम"),
    Verb("wait", "कर", "इंतज़ार"),
    Verb("live", "रह", takes="house city village forest"),  # where one can live
    Verb("swim", "तैर", takes="river"),
    Verb("dance", "नाच"),
    Verb("sing", "गा"),
    Verb("read", "पढ़"),
    Verb("write", "लिख"),
    Verb("eat", "खा"),
)
ANIMALS_DO = "eat drink see like fear watch sleep play run walk sit live"
VERBS = (*DOING, *MEETING, *HANDING, *HANDING_TO, *BEING, BORROW, PUT, GO, COME)
