"""Classes of English words that the reading of a statement goes by. Tables of verbs, nouns and states hold stems."""

from __future__ import annotations

from recallite.text.index_terms import stem_of


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def stems(text: str) -> frozenset[str]:
    """The words of a text, and their stems."""
    words = text.split()
    return frozenset((*words, *map(stem_of, words)))


def _groups(text: str) -> dict[str, int]:
    """The number of its group, by word; a semicolon ends a group."""
    return {word: place for place, line in enumerate(text.split(";")) for word in line.split()}


def _named(text: str) -> dict[str, str]:
    """The first word of its group, by word; a semicolon ends a group."""
    return {word: group.split()[0] for group in text.split(";") for word in group.split()}


def _numbered(text: str, first: int = 0) -> dict[str, str]:
    """The number of each word, in their order."""
    return {word: str(number) for number, word in enumerate(text.split(), first)}


# Words that change the tone of a statement, not what it says.
FILLERS = _words(
    """
    really very quite just please simply indeed well so too also basically literally honestly definitely
    certainly probably pretty rather fairly totally absolutely btw fyi anyway oh hey hi ok okay yeah yes um uh
    haha lol finally still even own then after_all at_all there here about around approximately roughly exactly
    usually normally generally typically mostly as way and apparently luckily sadly unfortunately officially
    completely fully every each only
    """
)
ARTICLES = _words("the a an this that these those some any which who where whom")
DEFINITE = _words("the my our your his her its their")
POSSESSIVES = {"my": "i", "our": "we", "your": "you", "his": "he", "her": "she", "its": "it", "their": "they"}
SPEAKERS = _words("i we")
PRONOUNS = _words("i we you he she it they someone everyone everybody nobody there")
OBJECTS = {"me": "i", "us": "we", "him": "he", "them": "they", "myself": "i", "mine": "i"}
# Nobody can tell from the text alone whom these name.
UNRESOLVED = _words("he she it they this that these those one you someone somebody everyone everybody there")
BE = _words("is are was were am be been being become stay remain get")
PAST_BE = _words("was were")
AUXILIARIES = _words("have do having done")
MODALS = _words("will would can could might may must shall should let")
UNREAL = _words(
    """
    would could might may should if whether unless suppose imagine maybe perhaps possibly wish whenever
    """
)
NEGATIONS = _words(
    """
    not never no neither nor cannot hardly barely nobody nothing none no_longer not_anymore
    """
)
PREPOSITIONS = _words(
    """
    in on at for to from of with without by into onto under over through via near during around between within
    towards toward per inside outside across behind beside against like about
    """
)
PARTICLES = _words("up down off out back over in away on")
# What opens a part that tells when, with whom or why: it adds to the value.
ADJUNCTS = _words(
    """
    since because until till during while when after before despite although though if so as_of
    """
)
CONJUNCTIONS = _words("and but so because though although while")
NOW = _words(
    """
    now suddenly nowadays currently lately presently these_days right_now at_present anymore again from_now
    today
    """
)
FORMER = _words("formerly previously")
STOPPED = _words("no_longer not_anymore anymore")
CORRECTIONS = _words("sorry correction actually oops scratch turns_out wait nope mistake")
# Phrases of two words that are read as one.
_JOINED = """
    no_longer: no longer, no more; anymore: any more, any longer; these_days: these days; right_now: right now;
    at_present: at present; instead_of: instead of, rather than; used_to: used to; turns_out: turns out, turned
    out; from_now: from now, from_now on; as_of: as of; such_as: such as; because: due to, because of; now: for
    now, by now, now and; must: have to, has to, had to; going_to: going to; not_only: not only; at_all: at all;
    actually: after all, in fact; all_over: all over; near: next to; change: change of; punctual: on time;
    nobody: no one; so_far: so far; well: of course; on_sale: on sale; out_of: out of; begin: take place, takes
    place, taking place; dump: got rid, get rid; quit: gave up, given up, give up, stepped down, dropped out;
    cancelled: called off, fell through; separated: broke up, split up; repaid: paid off; install: setting up,
    set up; disabled: turned off, switched off; enabled: turned on, switched on; dropped: phased out;
    reassigned: handed over
    """
JOINED = {
    (phrase.split()[0], phrase.split()[1]): word.strip()
    for word, _, phrases in (line.partition(":") for line in _JOINED.split(";"))
    for phrase in phrases.split(",")
}
# The forms of irregular verbs.
_FORMS = """
    go: goes; try: tries tried; study: studies studied;
    leave: left; sell: sold; buy: bought; go: went gone; get: got gotten; take: took taken; come: came; break:
    broke broken; lose: lost; find: found; become: became; run: ran; drive: drove driven; eat: ate eaten; drink:
    drank drunk; speak: spoke spoken; write: wrote written; teach: taught; give: gave given; make: made; pay:
    paid; meet: met; see: saw seen; say: said; tell: told; think: thought; feel: felt; keep: kept; hold: held;
    send: sent; spend: spent; begin: began begun; choose: chose chosen; fall: fell fallen; fly: flew flown;
    grow: grew grown; know: knew known; rise: rose risen; sleep: slept; swim: swam; win: won; wear: wore worn;
    wake: woke; have: has had; do: does did; bring: brought; build: built; ride: rode; repay: repaid; steal:
    stole stolen; lend: lent; bear: born; lead: led; rebuild: rebuilt; rewrite: rewrote rewritten; refuse:
    refused; forget: forgot; undergo: underwent; dye: dyed; lie: lay; sing: sang; throw: threw; draw: drew;
    catch: caught
    """
IRREGULAR = {
    form: lemma.strip()
    for lemma, _, forms in (line.partition(":") for line in _FORMS.split(";"))
    for form in forms.split()
}
# Verbs of a state that lasts, with one value at a time.
EXCLUSIVE = stems(
    """
    live reside work employ cost weigh drive base locate headquarter marry engage date call name report run
    listen host store schedule own belong stay attend expire depart leave start begin end close open arrive fly
    land lead depend last use rent sleep name serve write build train wake
    """
)
# Verbs by which something takes another value, named after "to": "moved the meeting to Friday", "rose to 5 %".
CHANGES = stems(
    """
    double halve triple chang move switch migrat upgrad downgrad updat postpon reschedul push delay extend
    shorten slip rais increas lower decreas reduc cut bump rise fall drop grow shrink climb go renam relabel
    convert transit transfer reloc shift set scale promot demot bring come turn adjust port reassign swap
    relicens up hike jump return hand rewrit dye set
    """
)
# Verbs that end what held of their object or, in the passive, of their subject.
ENDS = stems(
    """
    quit stop sell leave cancel end finish drop ditch abandon remove delete discontinue resign retire close lose
    divorce dump scrap sunset revoke terminate unsubscribe uninstall separate repay repaid disable kill
    """
)
# Of the same line, one replaces another: what is done to plans, orders, tickets, machines; how people stand.
STATUS = _groups(
    """
    open opened closed paid unpaid overdue sent received signed deployed merged waiting progress ongoing
    resolved done planned cancelled canceled delayed pending finished complete completed fixed broken repaired
    leaking solved failing passing blocked unblocked shipped delivered ordered approved rejected submitted draft
    published released stuck docked scheduled reopened working leaking dripping; on off enabled disabled active
    inactive; available unavailable removed deprecated discontinued; private public; single married engaged
    divorced widowed separated; vegan vegetarian pescatarian keto omnivore; employed unemployed retired; daily
    weekly biweekly monthly quarterly yearly hourly fortnightly; remote hybrid online offline; busy idle; full
    empty; sick healthy well ill back home away holiday vacation leave; red blue green brown black white yellow
    grey gray blond orange purple pink gold silver; hot cold warm
    """
)
# The same of a passive verb: "was repaired".
STATUS_STEMS = {stem_of(word): line for word, line in STATUS.items()}
LASTING_NOUNS = stems(
    """
    author founder creator inventor birthday birthplace maiden middle blood composer mother father eye director
    """
)
# What some think of it: of the same line, one excludes another, but no later opinion makes an earlier one outdated.
OPINIONS = _groups(
    """
    good great best better bad worst worse fantastic terrible awful amazing excellent horrible brilliant lovely
    wonderful nice inspiring boring interesting fun dull productive waste useful useless solid shaky well badly
    helpful; easy hard difficult simple tricky; fast slow slowly faster slower quick; safe risky dangerous
    unsafe; healthy unhealthy; honest liar trustworthy dishonest; rich poor broke; quiet noisy loud; salty bland
    sweet sour spicy; happy unhappy sad; accurate inaccurate; responsive unresponsive; optional required
    mandatory; fair unfair fairly unfairly; tall short small big tiny huge large; smart stupid clever dumb lazy;
    introvert extrovert introverted extroverted; clean dirty messy tidy; cheap expensive free overpriced;
    beautiful ugly pretty; true false right wrong correct; waterproof; punctual late early; older younger
    """
)
SOURCES = stems(
    """
    say says said told tell tells think thinks thought according heard read believe believes claims claim guess
    reckon suspect
    """
)
VERBS = (
    stems(
        """
        have do like love enjoy hate want need know think believ say tell ask hope wish feel read eat drink buy
        get make take give keep pay find see hear watch visit learn studi speak write play sing swim smoke wear
        sleep wake meet join becom remain stay own belong contain includ support handl return requir provid show
        pass fail accept offer creat develop found produc perform locat affili associ direct publish releas
        compos educ bear die follow follow adopt plan decid agre refus help seem look sound mean allow let put
        ride steal attend invest owe save earn spend own depend deploy review assign fix repair replac trust
        dislik avoid serv ship deliv build win confirm refut oppos happen reach consist cover read affect charg
        gradua order book pick travel hike camp grew grow born listen respond repli answer power licens teach
        train babysit share cook bake plant help catch hang treat collect clean rain send lend borrow throw
        donate trade exchange hurt ache bother itch launch commute prefer remind mind attach retrain reschedul
        forget miss cost lint compile bundle debug
        """
    )
    | EXCLUSIVE
    | CHANGES
    | ENDS
)
# Immutable: a later text that says otherwise corrects, or is wrong.
LASTING = stems("born bear die found create develop compose direct educate write author invent build publish")
UNITS = _named(
    """
    mg milligram milligrams; g gram grams; kg kilo kilos kilogram kilograms; lb lbs pound pounds; oz ounce ounces;
    t ton tons tonne tonnes; mm; cm centimetre centimetres centimeter centimeters; m metre metres meter meters;
    km kilometre kilometres kilometer kilometers; mi mile miles; ft foot feet; inch inches;
    l litre litres liter liters; ml; ms millisecond milliseconds; s sec secs second seconds; min mins minute minutes;
    h hour hours hr hrs; day days; week weeks; month months; year years; % percent percentage;
    $ usd dollar dollars bucks; € eur euro euros; £ gbp quid; kb; mb; gb; tb; mhz; ghz; w; kw; kwh; v; mph; kmh;
    k thousand; million; billion; degree degrees; bar; people; times; yo; node nodes; core cores; point points;
    engineer engineers; item items; page pages; °c; °f
    """
)
NUMBERS = _numbered(
    """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen twenty
    """
) | {"thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80", "ninety": "90"}
del NUMBERS["one"]
ORDINALS = _numbered("first second third fourth fifth sixth seventh eighth ninth tenth", 1)
DAYS = _named(
    """
    mon monday mondays; tue tuesday tuesdays tues; wed wednesday wednesdays; thu thursday thursdays;
    fri friday fridays; sat saturday saturdays; sun sunday sundays; weekend weekends; weekday weekdays
    """
)
for _name in ("mon", "wed", "fri", "sat", "sun", "weekday"):
    del DAYS[_name]
MONTHS = _named(
    """
    jan january; feb february; mar march; apr april; may; jun june; jul july; aug august; sep september; oct october;
    nov november; dec december
    """
)
for _name in ("jan", "mar"):
    del MONTHS[_name]
DATE_WORDS = _words(
    """
    today tomorrow yesterday tonight spring summer autumn winter noon midnight morning afternoon evening night
    christmas easter
    """
)
# Words that make two subjects two things where one has one and the other another of its line.
DISTINCT = _groups(
    """
    left right; north south east west; northern southern eastern western; front back rear; upper lower; upstairs
    downstairs; old new; first second third last final; morning evening afternoon night; frontend backend;
    staging production prod dev development test; mother mom mum father dad; brother sister; son daughter; uncle
    aunt; nephew niece; wife husband ex; grandma grandpa grandmother grandfather
    """
)
# A noun that names an attribute: what has one has one value of it.
ATTRIBUTES = stems(
    """
    contact therapist number phone email address name password birthday age height weight size price cost rent
    salary rate budget deadline date time port branch host url ip version model color colour favourite favorite
    goal plan title status boss manager landlord doctor dentist advisor supervisor captain mentor president ceo
    cfo cto director author capital language editor timezone location limit timeout ttl dimension provider bank
    employer job position role major gpa score temperature pressure battery balance level speed gate seat
    platform room venue hotel breed nickname username handle extension code pin key currency wife husband spouse
    girlfriend boyfriend partner fiance fiancee mayor leader head coach chairperson headquarters broadcaster
    founder owner religion university school type kind genre country city continent curfew bedtime dose dosage
    commute hometown nationality topic subject link goto usual order mascot runtime framework database client
    theme font lead tutor teacher therapist trainer guide speaker duration interval frequency threshold default
    editor shell browser branch directory path quota plan tier subscription
    """
)
# Nouns of which a person may have several: who says "my friend is Ann" may have other friends.
SEVERAL_NOUNS = stems(
    """
    friend cousin brother sister child kid son daughter colleague neighbour neighbor hobby skill interest aunt
    uncle nephew niece student client pet book song one example reason part way thing idea problem issue dog cat
    coworker member fan supporter subscriber cup piece lot couple bit series kind sort
    """
)
