"""Junk: greetings, thanks, acknowledgements, empty agreement and tool noise, which say nothing that lasts. For English.

A text is small talk if it can be cut into phrases of a table without a word left over, so that "ok, my number is 555"
is none; a name is a word left over too. It is tool noise if every line is.
"""

from __future__ import annotations

import re

from recallite.text.lazy_patterns import lazily

_PHRASES = """
hi; hello; hey; hiya; howdy; yo; greetings; hi there; hello there; hey there; hi again; hello again; hi all
hi everyone; hello everyone; hi folks; hey everyone; hey all; good morning; good afternoon; good evening; good day
morning; evening; good morning everyone; how are you; how are you doing; how are you today; how are you doing today
how's it going; how is it going; what's up; whats up; sup; how do you do; nice to meet you; pleased to meet you
nice to see you; good to see you; good to hear from you; good to hear; hope you are well; i hope you are well
hope you're well; i hope you're doing well; hope you're doing well; i'm good; i'm fine; i'm doing well; i am fine
doing well; and you; how about you; welcome; welcome back; long time no see; hola; bonjour; ciao; salut

bye; goodbye; good bye; bye bye; bye for now; good night; goodnight; night; see you; see ya; cya; see you later
see you soon; see you around; see you tomorrow; see you then; talk soon; talk to you later; talk to you soon; ttyl
later; until next time; catch you later; take care; have a good day; have a great day; have a nice day
have a good one; have a great one; have a good evening; have a great evening; have a good night; have a nice evening
have a good weekend; have a great weekend; have a nice weekend; have a lovely day; enjoy your day; enjoy your weekend
sleep well; farewell; you too; same to you; likewise; all the best; best regards; kind regards; regards; cheers; best
best wishes; sincerely

thanks; thank you; thank u; thx; ty; tysm; tyvm; much appreciated; appreciated; i appreciate it; appreciate it
i really appreciate it; really appreciate it; thanks a lot; thanks a million; thanks a bunch; thanks so much
thanks very much; thank you so much; thank you very much; thank you kindly; many thanks; thanks again; thank you again
thanks anyway; thanks in advance; thank you in advance; big thanks; so much; very much; a lot; again; for your help
for the help; for all your help; for all the help; for your time; for your support; for your patience; for that
for this; for everything; for the info; for the information; for the update; for the explanation; for explaining
for letting me know; for helping; for helping me; for asking; for the clarification; for clarifying
for the quick reply; for the quick response; for your quick response; for your reply; for your answer; for the answer
for the reminder; for the heads up; for sharing; for checking; for the advice; for the tip; for the tips; that helps
that helps a lot; this helps; that helped; that was helpful; that's helpful; that is helpful; very helpful
this is helpful; super helpful; really helpful; so helpful; helpful; you're the best; you are the best; you're a star
you're a lifesaver; you rock; you're awesome; you're amazing; you are awesome; you are amazing; merci; danke; gracias
you're welcome; you are welcome; you're very welcome; yw; no problem; no problem at all; np; no worries
no worries at all; not a problem; my pleasure; it's my pleasure; it was my pleasure; anytime; any time
don't mention it; glad to help; happy to help; glad i could help; happy i could help; always happy to help
glad to hear it; glad to hear that; i'm glad to hear that; i'm glad to hear it; i'm glad i could help
i'm happy to help; great to hear; that's good to hear; that's great to hear; happy to hear that; glad that helped
i'm glad it helped; glad it helped; glad it worked

ok; okay; k; kk; okey; oki; okie; okie dokie; okey dokey; alright; all right; right; roger; roger that; copy
copy that; ack; acknowledged; noted; duly noted; understood; got it; i got it; gotcha; got you; i see; i understand
i get it; ic; makes sense; that makes sense; makes perfect sense; that makes perfect sense; makes total sense
that makes total sense; fair; fair enough; sounds good; sounds great; sounds good to me; sounds great to me
sounds like a plan; sounds fine; sounds perfect; that sounds good; that sounds great; that sounds perfect
that sounds fine; that sounds like a plan; works for me; that works; that works for me; it works for me; fine by me
fine with me; i'm fine with that; good with me; i'm good with that; i'm ok with that; i'm okay with that; ok with me
okay with me; good to know; that's good to know; good point; great point; that's a good point; that is a good point
good idea; great idea; that's a good idea; that's a great idea; good question; great question; that's a good question
that's a great question; good call; nice one; good one; good job; great job; nice job; nice work; great work
good work; well done; way to go; keep it up; keep up the good work; you got it; you bet; will do; i will do that
i'll do that; on it; i'm on it; consider it done; no rush; take your time; all good; it's all good; we're good
all set; we're all set; i'm all set; never mind; nevermind; nvm; that's all; that is all; that's it; that'll be all
that will be all; that's all for now; nothing else; that's all i needed; no more questions; that's everything
as you wish; as you like; if you like; if you say so; whatever; whatever you say; go ahead; please go ahead; please do
please; pls; plz; go on; continue; please continue; carry on; proceed; please proceed; keep going; next; let's go
let's do it; let's do this; let's start; let's begin; do it; go for it

yes; yeah; yea; yep; yup; ya; aye; yes please; yes sir; sure; sure thing; for sure; surely; of course; certainly
absolutely; definitely; totally; exactly; precisely; indeed; correct; that's correct; that is correct; right on
that's right; that is right; you're right; you are right; you're absolutely right; you are absolutely right
you're correct; true; that's true; that is true; so true; very true; true that; agreed; i agree; i totally agree
i completely agree; i fully agree; i agree with you; i agree with that; totally agree; completely agree
couldn't agree more; i couldn't agree more; same; same here; me too; ditto; this; i think so; i think so too; i guess
i guess so; i suppose; i suppose so; probably; maybe; perhaps; possibly; i hope so; hopefully; why not; by all means
no; nope; nah; no thanks; no thank you; no thx; not really; not at all; not yet; not now; not sure; i'm not sure
i don't know; idk; dunno; i don't think so; no idea; i have no idea; hard to say; it depends; that depends; who knows

great; good; very good; nice; very nice; cool; very cool; awesome; amazing; excellent; perfect; fantastic; wonderful
brilliant; lovely; super; superb; fabulous; terrific; marvelous; splendid; fine; sweet; neat; dope; lit; yay; hooray
woohoo; hurray; woo; congrats; congratulations; bravo; that's great; that is great; that's good; that's nice
that's cool; that's awesome; that's amazing; that's perfect; that's fantastic; that's wonderful; that's excellent
that's lovely; that's fine; that is fine; that's ok; that's okay; that's alright; it's fine; it's ok; it's okay
its ok; its fine; that was great; how nice; how lovely; how interesting; interesting; very interesting
that's interesting; that is interesting; oh nice; oh cool; so cool; so nice; so good; love it; i love it; i like it
i like that; looks good; looks great; looks good to me; lgtm; looks fine; looks perfect; that looks good
that looks great; it looks good; much better; that's better; even better; perfect thanks; good stuff; great stuff
too bad; that's too bad; what a pity; that's a pity; that's a shame; what a shame; sorry; i'm sorry; so sorry
sorry about that; i'm sorry about that; sorry to hear that; i'm sorry to hear that; so sorry to hear that; my bad
my apologies; apologies; i apologize; oops; whoops; ouch; pardon; pardon me; excuse me; sorry for the confusion
i apologize for the confusion; apologies for the confusion; sorry for the inconvenience; sorry for the delay

oh; ah; uh; um; er; erm; hm; hmm; mhm; mm; mmm; uh huh; wow; whoa; woah; omg; oh my; oh my god; oh well; oh no; oh wow
aha; ahh; ohh; aww; aw; ugh; meh; huh; eh; geez; gosh; wtf; lol; lmao; rofl; haha; hahaha; hehe; heh; ha; well; so
now; then; anyway; really; seriously; no way; you know; i mean; let's see; let me see; let me think; let me check
let me think about it; let me think about that; i'll think about it; i will think about it; one moment
one moment please; one sec; one second; a moment; a moment please; just a moment; just a moment please; just a second
just a sec; just a minute; give me a moment; give me a second; give me a sec; give me a minute; hold on; hang on; wait
wait a moment; wait a second; wait a minute; bear with me; brb; be right back; back; i'm back; i'm here; are you there
you there; hello is anyone there; is anyone there; anyone there; can you hear me; testing; test; ping; pong; foobar
foo bar; hello world; lorem ipsum; todo; tbd; tbc

how can i help; how can i help you; how can i help you today; how can i assist you; how can i assist you today
how may i help you; how may i help you today; how may i assist you; how may i assist you today; what can i do for you
what can i do for you today; can i help you; can you help me; could you help me; help; help me; please help
please help me; i need help; i need your help; i have a question; i've a question; can i ask you something
can i ask you a question; can i ask a question; quick question; is there anything else; anything else
is there anything else i can help with; is there anything else i can help you with; anything else i can help with
anything else i can help you with; is there anything else you need; let me know; let me know if you have any questions
let me know if you have any other questions; let me know if you have any more questions; please let me know
let me know if you need anything; let me know if you need anything else; let me know if you need help
let me know if you need any help; let me know if you need more help; let me know if that helps
let me know how it goes; let me know if there's anything else; let me know if there is anything else
let me know what you think; let me know if i can help; feel free to ask; feel free to reach out
feel free to ask if you have any questions; feel free to ask if you have any other questions; i'm here to help
i'm here if you need me; don't hesitate to ask; i hope this helps; hope this helps; i hope that helps; hope that helps
good luck; best of luck; have fun; enjoy; hope to hear from you soon; looking forward to it; i look forward to it
looking forward to hearing from you; i'll let you know; i will let you know; i'll keep you posted; keep me posted
i'll get back to you; i will get back to you; i'll be right back; i'll check; i'll take a look; i will take a look
let me take a look; taking a look; let me look into it; let me look into that; i'll look into it; i'll look into that
looking into it; checking; checking now; working on it; i'm working on it; i'll get right on it; right away
coming right up; sure i can help with that; i can help with that; i can help you with that; i'd be happy to help
i'd be happy to help with that; i would be happy to help; i'm happy to help with that; happy to help with that
of course i can help with that; i'm not sure what you mean; what do you mean; can you repeat that
could you repeat that; say that again; come again; what; what now; what else; what's next; and then; who; why; how
when; where; really now
"""
_MANNERS = """
today; too; as well; then; now; much; everyone; all; guys; folks; friend; buddy; mate; man; dude; sir; madam; ma'am
team; there; dear; my friend; everybody; it is; it's; right; again; though; so much; very much; a lot; just; really
very; so; and; but; or
"""
_LONGEST_CHARS = 160
_WORD = lazily(r"[^\W_]+(?:'[^\W_]+)*")
_REPEATED = lazily(r"(.)\1{2,}")
# Marks that say something: "C#", "$5", "a@b", "x = y", "+1", "~/x". A digit does too.
_MEANING = lazily(r"[#$€£¥@=%+~\\/<>|{}\[\]^0-9]")


def _phrases(table: str) -> frozenset[tuple[str, ...]]:
    return frozenset(
        tuple(phrase.split()) for line in table.splitlines() for phrase in line.split(";") if phrase.strip()
    )


_SMALL_TALK = _phrases(_PHRASES)
# They are small talk only beside a phrase of it.
_BESIDE = _phrases(_MANNERS) - _SMALL_TALK
_MOST_WORDS = max(map(len, _SMALL_TALK))
_KNOWN_WORDS = frozenset(word for phrase in _SMALL_TALK | _BESIDE for word in phrase)

_THING = (
    r"(?:results?|match(?:es)?|output|entr(?:y|ies)|records?|items?|data|files?|rows?|changes?|documents?|hits?|response"
    r"|content|memories|messages?|value|text)"
)
_DOING = (
    r"(?:(?:down|up|re)?loading|installing|building|compiling|processing|fetching|indexing|searching|thinking|running"
    r"|waiting|connecting|starting|initiali[sz]ing|reading|writing|analy[sz]ing|generating|resolving|linking|scanning"
    r"|extracting|unpacking|syncing|saving|updating|checking|working|executing|parsing|preparing|retrying|calling)"
)
# What a tool works on that says nothing about what it is: "Installing dependencies...", not "Reading Dune...".
_ON = (
    r"(?: (?:for|the|a|your|to|from|on|and|it|all|dependenc(?:y|ies)|packages?|modules?|files?|data|index(?:es)?"
    r"|models?|requests?|response|results?|images?|project|input|output|servers?|database|connection|cache|assets|updates?"
    r"|quer(?:y|ies)|documents?|environment|tests?|pages?|web|config(?:uration)?|settings|workspace|repository|tools?"
    r"|metadata|layers?|objects?|deltas?|schema|command|code|script)){0,4}"
)
_DID = r"(?:done|success|succeeded|completed?|finished|ready|saved|updated|deleted|created|ok|okay|passed|executed)"
_NOISE = lazily(
    "|".join(
        [
            r"null|none|undefined|nan|nil|void|true|false|n/?a|empty|failed",
            r"asdf\w{0,9}|qwerty|test(?:ing)?(?: \d){1,3}",
            rf"(?:no|0|zero) (?:(?:matching|relevant|search|more|new|further|other|such) )?{_THING}"
            r"(?: (?:(?:were|was) )?(?:found|returned|available|matched|affected|to (?:show|display|report|commit)))?",
            r"(?:nothing|none) (?:found|to (?:do|show|report|commit|display))|not found|no errors?|command not found",
            r"(?:(?:process|command|program) )?(?:exit(?:ed)?|finished|returned)(?: with)?(?: exit)? (?:code|status):?"
            r" ?-?\d{1,4}",
            r"(?:the )?(?:command|operation|task|tool|function|(?:tool|function) call|request|process|script|job|action"
            rf"|step|build|query)(?: (?:was|is|has|has been|ran|run))? (?:successful(?:ly)?|{_DID})(?: successfully)?",
            rf"(?:tool )?successful(?:ly)?(?: {_DID})?",
            rf"{_DID}(?: successfully| in \d{{1,6}}(?:\.\d{{1,4}})? ?m?s(?:econds?)?)?",
            r"(?:http(?:/\d(?:\.\d)?)? )?20[014] (?:ok|created|no content)",
            rf"(?:still )?{_DOING}{_ON} ?(?:\.{{2,6}}|…) ?(?:\d{{1,3}}(?:\.\d)? ?%|done|ok)?",
            r"(?:please )?wait(?:ing)?(?: \w{1,9})? ?(?:\.{2,6}|…)|please wait",
            rf"(?:{_DOING}|progress|status):? ?\d{{1,3}}(?:\.\d{{1,2}})? ?%(?: (?:done|completed?))?",
            r"\d{1,3}(?:\.\d)? ?% (?:done|completed?)",
            r"(?:step|attempt|retry|page|iteration|epoch|batch) \d{1,6} ?(?:/|of) ?\d{1,6}(?: ?(?:\.{2,6}|…|done|ok))?",
            r"(?:tool|function)[_ ](?:call|use|result|output|response)s?|(?:no|empty) (?:output|result|response)",
        ]
    ),
    re.IGNORECASE,
)
# A bar of progress: "45%|####    | 45/100 [00:10<00:12, 4.5it/s]", "[=====>   ] 50%".
_BAR = lazily(r"(?:[^|\[\]:]{0,40}: ?)?\d{0,3} ?%? ?[|\[][#=█▏▎▍▌▋▊▉░▒▓> .-]{3,120}[|\]][0-9a-z/%.:,<\[\]? ]{0,60}")
_JSON = lazily(
    r'\{(?:\s*"(?:status|success|ok|result|results|data|items|output|rows|matches|errors?|count|total|message|stdout|stderr'
    r'|exit_code|returncode)"\s*:\s*(?:true|false|null|\[\s*\]|\{\s*\}|0|"(?:ok|success|done|completed)?")\s*(?:,|(?=\}))){1,8}\s*\}',
    re.IGNORECASE,
)
_LOG_LEVEL = lazily(r"[\[(]?(?:info|debug|trace|notice)[\])]?:? ", re.IGNORECASE)
_BRACKETS = "[](){}<>«»\"'`"
_MARKS = " \t⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏✓✔✅☑✗✘•·●*>$-"


def is_junk(text: str) -> bool:
    """Whether a text is only small talk or tool noise."""
    stripped = text.strip()
    return _small_talk(stripped) or _JSON.fullmatch(stripped[: 4 * _LONGEST_CHARS]) is not None or _all_noise(stripped)


def _all_noise(text: str) -> bool:
    """Whether every line is empty, a separator, or what a tool prints without a result."""
    return all(
        not any(map(str.isalnum, line)) or (len(line) <= _LONGEST_CHARS and _noise(line)) for line in text.splitlines()
    )


def _noise(line: str) -> bool:
    line = line.strip()
    bare = line.strip(_MARKS)
    level = _LOG_LEVEL.match(bare)
    bare = (bare if level is None else bare[level.end() :]).strip(_BRACKETS)
    return (
        _BAR.fullmatch(line) is not None
        or _NOISE.fullmatch(bare) is not None
        or _NOISE.fullmatch(bare.rstrip(".!… ")) is not None
    )


def _small_talk(text: str) -> bool:
    """Whether a text is phrases of the table in a row."""
    if len(text) > _LONGEST_CHARS or _MEANING.search(text):
        return False
    words = []
    for word in _WORD.findall(text.replace("’", "'").lower()):
        if (plain := _plain(word)) is None:
            return False
        words.append(plain)
    # How the words up to each place were cut: 0 not at all, 1 without small talk, 2 with a phrase of it.
    reached = [1] + [0] * len(words)
    for start, before in enumerate(reached):
        for stop in range(start + 1, min(start + _MOST_WORDS, len(words)) + 1) if before else ():
            phrase = tuple(words[start:stop])
            if phrase in _SMALL_TALK:
                reached[stop] = 2
            elif phrase in _BESIDE:
                reached[stop] = max(reached[stop], before)
    return reached[-1] == 2


def _plain(word: str) -> str | None:
    """A word of the phrases without lengthening ("yesss" is "yes", "goooood" is "good"); None where it is none."""
    if word in _KNOWN_WORDS:
        return word
    for left in (r"\1", r"\1\1"):
        shorter = _REPEATED.sub(left, word)
        if shorter in _KNOWN_WORDS:
            return shorter
    return None
