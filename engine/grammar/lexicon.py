"""The words of the grammar: people, things, verbs, and what is said of them."""

from __future__ import annotations

# People. Roles may be he, she or they; the words for women and men, and names, may not.
ROLES = tuple(
    """
    shopkeeper customer teacher student doctor patient nurse lawyer client manager worker baker farmer neighbour pilot
    passenger waiter guest host cook artist singer writer reader driver tourist guide coach player librarian visitor
    tailor gardener plumber dentist scientist assistant captain sailor boss clerk mechanic builder officer soldier judge
    owner cashier secretary engineer programmer designer painter musician dancer actor trainer cousin stranger child
    professor colleague friend buyer seller barber banker traveller
    """.split()
)
WOMEN = tuple("woman girl mother sister daughter aunt queen grandmother".split())
MEN = tuple("man boy father brother son uncle king grandfather".split())
HER_NAMES = tuple("anna mary priya sara emma julia maria nina asha".split())
HIS_NAMES = tuple("tom john ravi peter paul david arjun ben sam".split())

# Things: what is given, what others are put into, what breaks and what breaks it.
GIFTS = tuple(
    """
    discount book present cake coffee ticket letter pen pencil watch ring coat hat scarf umbrella bag bottle chair lamp
    radio camera phone laptop guitar violin ball toy doll bicycle car key map coin cup blanket pillow picture painting
    mirror clock basket box apple orange banana sandwich cookie pizza loan lift tip meal drink job room seat lesson
    reward medal prize gift refund receipt flower kite jacket necklace sweater notebook vase house medicine computer
    horse dog cat puppy
    """.split()
)
CONTAINERS = tuple(
    "suitcase bag box drawer cupboard basket van backpack pocket case crate car trunk closet tent".split()
)
FITTED = tuple(
    """
    trophy book lamp guitar violin piano laptop sofa mirror painting statue chair umbrella camera radio coat bicycle
    ladder globe cake
    """.split()
)
HITTING = tuple("hammer ball stone rock brick bat truck branch tree bowl statue bullet pipe bus shovel".split())
BREAKING = tuple("vase window glass bottle mirror plate cup lamp screen clock fence bench bridge table toy".split())
PLACED = tuple(
    """
    key book letter picture chair box cup coin flower ticket shoe pencil photo toy map bottle lamp plate coat painting
    """.split()
)
NEAR = tuple("cabinet door table wall window house garden car shelf drawer bed mirror kitchen school tree room".split())
ANIMALS = tuple("cat dog bird horse mouse rabbit cow fox duck lion monkey goat".split())
SPOTS = tuple("mat rug sofa table chair bed floor wall roof grass bench road river fence barn hill".split())
HANDLED = tuple(
    """
    book box letter door window car picture lamp key table chair bottle map coat bicycle wall fence house guitar clock
    basket watch ring plate
    """.split()
)

PEOPLE_ADJECTIVES = tuple("old young tall friendly clever quiet busy little famous local".split())
THING_ADJECTIVES = tuple(
    """
    old new red blue green small big heavy beautiful cheap expensive broken brown black white wooden
    """.split()
)

# Verbs, past and present.
GIVE = (
    ("gave", "gives"), ("offered", "offers"), ("lent", "lends"), ("sold", "sells"), ("handed", "hands"),
    ("sent", "sends"), ("brought", "brings"), ("promised", "promises"), ("served", "serves"),
)  # fmt: skip
GET = (("got", "gets"), ("received", "receives"), ("borrowed", "borrows"), ("took", "takes"), ("bought", "buys"))
THANK = (("thanked", "thanks"), ("hugged", "hugs"))
HELP = (("helped", "helps"), ("assisted", "assists"), ("supported", "supports"), ("guided", "guides"))
SCOLD = (
    ("scolded", "scolds"), ("punished", "punishes"), ("blamed", "blames"), ("fired", "fires"), ("warned", "warns"),
    ("criticised", "criticises"),
)  # fmt: skip
PRAISE = (
    ("praised", "praises"), ("admired", "admires"), ("congratulated", "congratulates"), ("rewarded", "rewards"),
    ("promoted", "promotes"),
)  # fmt: skip
CALL = (("called", "calls"), ("visited", "visits"), ("phoned", "phones"), ("met", "meets"))
BREAK = (("broke", "breaks"), ("smashed", "smashes"), ("damaged", "damages"), ("cracked", "cracks"))
HANDLE = (
    ("saw", "sees"), ("found", "finds"), ("opened", "opens"), ("cleaned", "cleans"), ("painted", "paints"),
    ("carried", "carries"), ("lost", "loses"), ("repaired", "repairs"), ("dropped", "drops"), ("hid", "hides"),
    ("touched", "touches"), ("bought", "buys"), ("sold", "sells"),
)  # fmt: skip
REST = (
    ("sat", "sits"), ("lay", "lies"), ("slept", "sleeps"), ("stood", "stands"), ("played", "plays"),
    ("jumped", "jumps"), ("walked", "walks"), ("waited", "waits"),
)  # fmt: skip

PLACES = ("on", "near", "under", "behind", "by")
BETWEEN = ("to", "near", "behind", "in", "on", "by", "beside")
INTO = ("into", "in", "inside")
ADVERBS = ("yesterday", "quickly", "carefully", "again", "today", "slowly", "together", "outside")
STATES = (
    "on the table", "in the kitchen", "in the garden", "behind the door", "under the bed", "old", "new", "red", "heavy",
    "missing", "very old", "green", "blue", "beautiful", "cheap", "broken", "on the floor", "here",
)  # fmt: skip
OUTCOMES = (
    "smiled", "laughed", "left", "came back", "went home", "said nothing", "was happy", "waited", "stayed", "cried",
)  # fmt: skip
THING_OUTCOMES = ("was repaired", "was replaced", "was thrown away", "stayed outside", "was sold")

# Reasons, in the past. Those of a pair of lists speak of one person or thing each.
OF_GIVER = (
    "was generous", "was kind", "was rich", "was nice", "was wealthy", "was thoughtful", "was helpful",
    "was very generous", "was very kind", "was feeling generous", "was in a good mood", "was a kind person",
    "was a generous person", "was moving away", "was leaving town", "wanted to help", "wanted to be nice",
    "had too many", "had more than enough", "had plenty", "had two", "felt sorry", "felt generous", "liked to share",
    "loved to share", "owed a favour", "had made a promise", "liked giving presents",
    "was friendly", "was very nice",
)  # fmt: skip
OF_RECEIVER = (
    "was a regular", "was poor", "was hungry", "was in need", "was new in town", "was loyal", "was very loyal",
    "was lonely", "was sick", "was thirsty", "was sad", "was a good friend", "was an old friend", "was in trouble",
    "was having a bad day", "was homeless", "needed help", "needed it", "deserved it", "had asked for it",
    "had asked for one", "had asked politely", "had a birthday", "had worked hard", "had none", "had lost everything",
    "had nothing", "deserved a reward", "had won the contest", "had passed the exam", "had waited for hours",
    "came every week", "came every day", "needed one", "was very poor", "was very hungry",
    "was in pain", "was cold", "was ill", "was tired", "was injured", "was broke", "was very sick", "was very sad",
)  # fmt: skip
OF_HELPFUL = (
    "was generous", "was kind", "was nice", "was thoughtful", "was helpful", "was patient", "was very kind",
    "had helped", "had been kind", "had been helpful", "had saved the day", "had given good advice",
    "had kept a promise", "was friendly",
)  # fmt: skip
OF_THANKFUL = (
    "was grateful", "was thankful", "was polite", "was happy", "was relieved", "felt grateful", "felt relieved",
    "had good manners", "had got a present", "had learned a lot", "was very grateful",
)  # fmt: skip
OF_HELPER = (
    "was kind", "was helpful", "was strong", "was patient", "was experienced", "had time", "knew the way",
    "knew the answer", "wanted to help", "was very patient", "was nice", "was friendly", "was very kind",
)  # fmt: skip
OF_HELPED = (
    "was lost", "was in trouble", "was weak", "was tired", "was new", "was a beginner", "was confused", "needed help",
    "had asked for help", "had no idea", "was struggling", "was very tired", "was in pain", "was sick", "was ill",
    "was hurt", "was injured", "was in need",
)  # fmt: skip
OF_ANGRY = (
    "was angry", "was strict", "was furious", "was annoyed", "was in a bad mood", "had lost patience",
    "was very strict", "was jealous", "was unfair",
)  # fmt: skip
OF_GUILTY = (
    "was late", "was rude", "was lazy", "was careless", "had lied", "had cheated", "had made a mistake",
    "had broken a rule", "was always late", "was very rude", "had stolen money",
)  # fmt: skip
OF_PLEASED = (
    "was impressed", "was pleased", "was proud", "was delighted", "liked good work", "valued hard work",
    "was very proud", "was fair",
)  # fmt: skip
OF_GOOD = (
    "was brave", "was clever", "was brilliant", "was talented", "was honest", "had worked hard", "had won the contest",
    "had passed the exam", "had done well", "had saved a life", "was very brave",
)  # fmt: skip
OF_CALLER = (
    "needed advice", "had a question", "was worried", "wanted to talk", "was bored", "was curious", "wanted advice",
    "had good news", "was very worried",
)  # fmt: skip
OF_CALLED = (
    "was ill", "was sick", "was in hospital", "had moved house", "had just returned", "had a birthday", "was alone",
    "was very ill", "had been away",
)  # fmt: skip
OF_TOO_LARGE = tuple(f"was too {size}" for size in "big large wide tall long thick bulky".split())
OF_TOO_SMALL = tuple(f"was too {size}" for size in "small narrow short tight shallow little".split())
OF_HARD = ("was heavy", "was hard", "was solid", "was fast", "was made of steel", "was made of iron", "was very heavy")
OF_FRAGILE = (
    "was fragile", "was thin", "was delicate", "was weak", "was made of glass", "was made of paper", "was very fragile",
    "was badly made",
)  # fmt: skip

PRESENT = {
    "was": "is", "had": "has", "wanted": "wants", "needed": "needs", "felt": "feels", "liked": "likes",
    "loved": "loves", "owed": "owes", "deserved": "deserves", "came": "comes", "knew": "knows", "valued": "values",
}  # fmt: skip
PLURAL_VERB = {"was": "were", "is": "are", "has": "have"}  # beside those that lose an s

CONJUNCTIONS = ("because", "since", "as")
POSSESSIVES = ("my", "our", "his", "her", "their")
DETERMINERS = ("the", "a", "an", "this", "that", "every", *POSSESSIVES)
PRONOUNS = ("she", "he", "they", "it")


def plural(noun: str) -> str:
    """Write the plural of one of the nouns here."""
    irregular = {"shelf": "shelves"}
    if noun in irregular:
        return irregular[noun]
    return f"{noun}es" if noun.endswith(("x", "ch", "sh", "s")) else f"{noun}s"


def present(reason: str) -> str:
    """Write a reason in the present: "was a regular" becomes "is a regular"."""
    first, _, rest = reason.partition(" ")
    return f"{PRESENT[first]} {rest}".strip()


def for_they(reason: str) -> str:
    """Write a reason after "they": "was a regular" becomes "were a regular"."""
    first, _, rest = reason.partition(" ")
    if first in PLURAL_VERB:
        first = PLURAL_VERB[first]
    elif first in PRESENT.values():
        first = first.removesuffix("s")
    return f"{first} {rest}".strip()


def pronouns_of(person: str) -> frozenset[str]:
    """Say which pronouns may stand for a person; a word that is not listed here may be anybody's."""
    if person in WOMEN or person in HER_NAMES:
        return frozenset({"she"})
    if person in MEN or person in HIS_NAMES:
        return frozenset({"he"})
    return frozenset({"she", "he", "they"})


NAMES = frozenset(HER_NAMES + HIS_NAMES)
PEOPLE = ROLES + WOMEN + MEN
