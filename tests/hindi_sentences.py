"""Hindi written by hand: nouns by gender, and English sentences with their translations and partners."""

from dataclasses import dataclass


def listed(words: str) -> frozenset[str]:
    """Make a list of words of a text."""
    return frozenset(words.split())


# Who is a man and who a woman; those in BOTH have one form for either.
MEN = listed("""
    लड़का भाई राजकुमार शिक्षक छात्र लेखक गायक नर्तक कवि पड़ोसी माली आदमी बच्चा राजा कुत्ता घोड़ा हाथी
    रवि अर्जुन अमित रोहन विजय मोहन राहुल करण जॉन पीटर टॉम डेविड लड़के बच्चे कुत्ते घोड़े
""")
WOMEN = listed("""
    लड़की बहन रानी राजकुमारी नर्स शिक्षिका छात्रा लेखिका गायिका नर्तकी कवयित्री पड़ोसिन मालिन औरत माँ बिल्ली गाय
    आशा मीरा प्रिया अनीता सीता गीता माया रेखा निशा मैरी अन्ना मारिया
    लड़कियाँ बहनें रानियाँ राजकुमारियाँ नर्सें औरतें बिल्लियाँ गायें
""")
BOTH = listed("दुकानदार ग्राहक दोस्त डॉक्टर किसान ड्राइवर मेहमान कलाकार खिलाड़ी व्यापारी सैनिक")
# Things, one and several, and places in front of a postposition.
MASCULINE = listed("""
    अखबार पाठ गाना गाने खेल सेब आम केला केले संतरा संतरे अंडा अंडे केक आलू टमाटर फल चावल पानी दूध रस
    पेन डिब्बा डिब्बे प्याला प्याले थैला थैले फूल उपहार खिलौना खिलौने पत्थर छाता छाते कागज़ चाकू जूता जूते कोट
    दरवाज़ा दरवाज़े घर पेड़ बगीचे स्कूल कमरे बाज़ार शहर गाँव पुस्तकालय खेत अस्पताल मंदिर पार्क जंगल फ़र्श पुल
""")
FEMININE = listed("""
    किताब चिट्ठी कविता कहानी तस्वीर फ़िल्म सब्ज़ी रोटी मछली चाय कॉफ़ी पेंसिल गेंद थाली चाबी अँगूठी घड़ी दवा
    कमीज़ टोपी साड़ी खिड़की कुर्सी मेज़ कार साइकिल छूट दुकान रसोई छत सड़क नदी
    किताबें चिट्ठियाँ कविताएँ कहानियाँ तस्वीरें फ़िल्में सब्ज़ियाँ पेंसिलें गेंदें थालियाँ चाबियाँ अँगूठियाँ घड़ियाँ
    कमीज़ें टोपियाँ साड़ियाँ खिड़कियाँ कुर्सियाँ मेज़ें कारें साइकिलें
""")
# Forms that are direct, and forms that are oblique, and nothing else.
DIRECT = listed("लड़का बच्चा कुत्ता घोड़ा लड़कियाँ बहनें रानियाँ औरतें नर्सें राजकुमारियाँ बिल्लियाँ गायें")
OBLIQUE = listed("""
    लड़कों बच्चों आदमियों भाइयों राजाओं छात्रों शिक्षकों कवियों दोस्तों लड़कियों औरतों बहनों रानियों गायों हाथियों
    कमरे बगीचे
""")


@dataclass(frozen=True)
class Example:
    """A sentence.

    Attributes:
        english: as typed.
        hindi: its translation.
        partners: for each Hindi word the English word it translates, "-" for none.
    """

    english: str
    hindi: str
    partners: str


EXAMPLES = tuple(
    Example(*row)
    for row in (
        ("the girl reads a book", "लड़की किताब पढ़ती है", "girl book reads -"),
        ("the boy reads a book", "लड़का किताब पढ़ता है", "boy book reads -"),
        ("the boy does not eat the apple", "लड़का सेब नहीं खाता", "boy apple not eat"),
        ("the boy doesn't eat the apple .", "लड़का सेब नहीं खाता ।", "boy apple doesn't eat ."),
        ("the boys read the books", "लड़के किताबें पढ़ते हैं", "boys books read -"),
        ("the girls do not read the books", "लड़कियाँ किताबें नहीं पढ़तीं", "girls books not read"),
        ("the teacher gives the student a book", "शिक्षक छात्र को किताब देता है", "teacher student - book gives -"),
        ("the teacher gives a book to the student", "शिक्षक छात्र को किताब देता है", "teacher student - book gives -"),
        ("the girl sees the boy", "लड़की लड़के को देखती है", "girl boy - sees -"),
        ("the boy sees the girl", "लड़का लड़की को देखता है", "boy girl - sees -"),
        ("the woman knows the boys", "औरत लड़कों को जानती है", "woman boys - knows -"),
        (
            "the girl gives the boy an apple because he is hungry",
            "लड़की लड़के को सेब देती है क्योंकि वह भूखा है",
            "girl boy - apple gives - because he hungry is",
        ),
        (
            "the boy gives an apple to the girl because she is hungry",
            "लड़का लड़की को सेब देता है क्योंकि वह भूखी है",
            "boy girl - apple gives - because she hungry is",
        ),
        (
            "the teacher reads a book because she is tired",
            "शिक्षिका किताब पढ़ती है क्योंकि वह थकी हुई है",
            "teacher book reads - because she tired tired is",
        ),
        (
            "the teacher reads a book because he is not tired .",
            "शिक्षक किताब पढ़ता है क्योंकि वह थका हुआ नहीं है ।",
            "teacher book reads - because he tired tired not is .",
        ),
        (
            "the shopkeeper gives the customer a discount because she is generous",
            "दुकानदार ग्राहक को छूट देती है क्योंकि वह उदार है",
            "shopkeeper customer - discount gives - because she generous is",
        ),
        (
            "the shopkeeper gives the customer a discount because she is a regular",
            "दुकानदार ग्राहक को छूट देता है क्योंकि वह नियमित ग्राहक है",
            "shopkeeper customer - discount gives - because she regular regular is",
        ),
        ("the child sleeps in the room", "बच्चा कमरे में सोता है", "child room in sleeps -"),
        ("the children play in a garden", "बच्चे बगीचे में खेलते हैं", "children garden in play -"),
        ("the cat sits on the floor", "बिल्ली फ़र्श पर बैठती है", "cat floor on sits -"),
        ("she buys a shirt from the shop", "वह दुकान से कमीज़ खरीदती है", "she shop from shirt buys -"),
        ("he takes mangoes from the farmer", "वह किसान से आम लेता है", "he farmer from mangoes takes -"),
        ("asha puts the cup on the table", "आशा प्याला मेज़ पर रखती है", "asha cup table on puts -"),
        ("ravi goes to the school every day", "रवि हर दिन स्कूल जाता है", "ravi every day school goes -"),
        ("ravi and asha drink tea", "रवि और आशा चाय पीते हैं", "ravi and asha tea drink -"),
        ("asha and meera drink tea", "आशा और मीरा चाय पीती हैं", "asha and meera tea drink -"),
        ("the girl reads her book", "लड़की अपनी किताब पढ़ती है", "girl her book reads -"),
        ("the girl reads his book", "लड़की उसकी किताब पढ़ती है", "girl his book reads -"),
        ("the man helps the woman", "आदमी औरत की मदद करता है", "man woman - helps helps -"),
        ("the dog fears the horse", "कुत्ता घोड़े से डरता है", "dog horse - fears -"),
        ("the king does not close the door", "राजा दरवाज़ा बंद नहीं करता", "king door close not close"),
        ("the queen calls the king", "रानी राजा को बुलाती है", "queen king - calls -"),
        ("the old man opens a green box", "बूढ़ा आदमी हरा डिब्बा खोलता है", "old man green box opens -"),
        (
            "my brother lends the driver a bicycle",
            "मेरा भाई ड्राइवर को साइकिल उधार देता है",
            "my brother driver - bicycle lends lends -",
        ),
        (
            "they do not trust the doctor because he is lazy",
            "वे डॉक्टर पर भरोसा नहीं करते क्योंकि वह आलसी है",
            "they doctor - trust not trust because he lazy is",
        ),
        ("the girl is hungry", "लड़की भूखी है", "girl hungry is"),
        ("the boys are not tired .", "लड़के थके हुए नहीं हैं ।", "boys tired tired not are ."),
        ("the women are in the garden", "औरतें बगीचे में हैं", "women garden in are"),
    )
)
