"""Keys without a form of their own: a random value right after a vendor's or a credential's name.

Starts from the value: a run of key characters that no person typed, with a name within forty characters before it.
Prose has few such runs, so that the table of names is seldom needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from memlane.gate.secrets.decoys import counts_up, is_digest, is_elided, is_random
from memlane.gate.secrets.names import kind_of
from memlane.gate.secrets.repeats import Repeats
from memlane.gate.secrets.rule import U, exact, pattern

# Rule, description, start, end.
Found = tuple[str, str, int, int]

# Vendor words and the shapes of their keys: h hex, l lower-case letters and digits, a letters and digits,
# w also _ and -, b base64, u UUID, d digits; then the length. A random value of twenty characters or more that is no
# bare digest needs no shape.
VENDORS: dict[str, str] = dict(
    entry.split("=")
    for entry in """
    ado=l52 devops=l52 vsts=l52 ably=w30 abuseipdb=h80 accuweather=a32 adafruit=w32 addthis=l16 adobe=h32 adzuna=h32
    aftership=u,a32 agora=h32 aha=h64 airbrake=h32 airship=w22 airtable=a17 airvisual=u aiven=b372 alchemy=w32
    algolia=h32,a10,h64 alibaba=a30 alienvault=h64 aliyun=a30 amazon=b40 amplitude=h32 apideck=a40 apiflash=h32
    apilayer=a32 apollo=w22 appcues=w36 appdynamics=a36 appfollow=w20 appoptics=w71 artifactory=a73,a64 asana=h32,d16
    assemblyai=h32 atera=h32 atlassian=a24 auth0=w32,w64 autodesk=a32 autoklose=a32 aviationstack=h32 aws=b40
    azure=a32,h32,a84,w40,b88,u,a52 bamboohr=h40 besttime=h36 betterstack=a24 bing=h32 bitbar=a32 bitbucket=a32,w64,a18
    bitfinex=w43 bitly=h40 bitmex=w24,w48 bitrise=w86 bittrex=h32 blitapp=w39 blogger=w39 boostnote=h64 box=a32
    braintree=h32,l16 branch=w32 braze=u browserstack=a20 buddy=u bugsnag=h32,u buildkite=h40 bunny=u buttercms=h40
    caflou=w155 calendarific=h40 calendly=a32 campaignmonitor=a96 capsule=w64 cexio=a27 chartmogul=h32 chatfuel=a128
    checkmarx=u checkr=h40 chief=a40 circleci=h40 cisco=h40 ciscospark=b64 civo=a50 clarifai=h32 clearbit=w35
    clicksend=u clickup=a36 cliengo=u clockify=a48,b64 clockwork=h40 cloudconvert=w40 cloudflare=h37,w40,h32
    cloudinary=w27,d15 cloudmersive=u coda=u codacy=a20 codeclimate=h64 codecov=u,h32 cohere=a40 coinapi=u
    coinbase=w64,a16,u coinlayer=h32 coinmarketcap=u commercejs=w48 confluence=a24 confluent=a16,b64 contentful=w43
    contentstack=h20 convertkit=w22,w43 coveralls=w37 credly=w64 crowdin=h80 crowdstrike=h32,a40 currencylayer=h32
    customerio=h20 dashlane=w64 databento=w32 datadog=h32,h40,a32,a40 datarobot=w60 deepgram=h40 deepl=u deepseek=h32
    delighted=a32 detectify=h32 dialogflow=h32 digitalocean=h64 discogs=a40 discord=w32,h64,d18 discourse=h64 disqus=a64
    docusign=u doppler=a43 droneci=a32 dropbox=l15,w64 duffel=w43 duo=a40,a20 dynatrace=a21 eagleeye=w36 easypost=a58
    ebay=u edamam=h32,h8 elastic=b60,a24 elevenlabs=h32 enigma=a40 etherscan=a34 etsy=a24,a10 eventbrite=a20 everhour=h4
    exchangerate=h24 exoscale=w43 expo=w40 facebook=h32 fastly=w32 figma=u finicity=h32,a20 finnhub=a20 firebase=w35
    fixer=h32 fleetbase=a40 flickr=h32,h16 flightaware=a32 float=h16 fmfw=w32 formbucket=a40 foursquare=a48
    freshbooks=h64 freshdesk=a20 fulcrum=h80 geckoboard=h32 geoapify=h32 geocodio=h39 getresponse=a32 giphy=a32
    gitbook=a40 gitea=h40 github=h40,h20 gitlab=w20,h64 gitter=h40 gnews=h32 gocardless=w40 google=w24,w39 graphhopper=u
    gravitee=u greenhouse=h32 groove=h64 gumroad=h64,w43 gyazo=w43 happyscribe=a24 harvest=w84 helpscout=a48 hereapi=w43
    heroku=u hetzner=a64 hive=w32 honeybadger=a20 honeycomb=h32,a22 hootsuite=u hubspot=u hunter=h40 hypertrack=w54
    iconfinder=a64 imagekit=w36 infobip=h32,w70 infura=h32 instamojo=h32 intercom=b60,w60 ipapi=h32 ipdata=h56
    ipgeolocation=h32 ipinfo=h14 ipstack=h32 jenkins=h34,h32,h40 jfrog=a73,a64 jira=a24 jotform=h32 jumpcloud=h40
    juro=a40 kagi=w43 kairos=h32 kakao=h32 keen=h96 kraken=b88,b56 kucoin=h24,u lastfm=h32 launchdarkly=w40,u
    lemonsqueezy=a40 line=a32,b172 linear=h32 linkedin=a14,a16 linode=h64 liveagent=a32 livestorm=w60 lob=h40
    locationiq=h32 logdna=h32 loggly=u logz=a32 looker=a20,a24 loom=a32 mailboxlayer=h32 mailchimp=h32 mailgun=h32,a72
    mailjet=h32 mailmodo=w31 mailtrap=h32 mandrill=w22 mapbox=w60 mapquest=a32 mattermost=l26 maxmind=a16 mediastack=h32
    meraki=h40 mesibo=a64 messagebird=a25,u mistral=a32 mixpanel=h32 moderation=u monday=w100 mongodb=u moonshot=a48
    moralis=a64 mux=b75,u myfreshworks=w40 nasdaq=w20 netcore=h32 netlify=w43 neutrino=a48 newrelic=a64,h40,w40
    newsapi=h32 nexmo=h8,a16 nftport=u ngrok=w49 notion=a43 nvd=u nytimes=w32 oanda=h64 okta=w42,w40,w64,a20
    omnisend=a75 oncehub=a32 onedesk=u onelogin=h64 onesignal=b48,u openai=w40 opencage=h32 openuv=a32 openweather=h32
    opsgenie=u optimizely=w54 oracle=w32 oxylabs=a20 paddle=h50 pagerduty=w20,h32 papertrail=a20 parse=a40 paypal=w80
    paystack=h40 pendo=u persona=u phrase=h64 pinata=h64,h20 pingdom=w64,a32 pipedrive=h40 pivotal=h32 plaid=h30,h24
    planetscale=w43,l12 plivo=w40,a20 polygon=w32 positionstack=h32 posthog=w43 postmark=u privacy=u prospect=a32
    proxycrawl=w22 pubnub=u pulumi=h40 pusher=h20 quickbase=w32 rapidapi=a50,w50 raygun=w22 razorpay=a24,a20
    recaptcha=w40 recurly=h32 reddit=w14,w22,w27,w30 redis=a32 refiner=u relic=a64,h40,w40 render=a32
    ringcentral=w22,w86 rollbar=h32 rudderstack=a27 salesforce=h64,a24 saucelabs=u scaleway=u scraperapi=h32
    scrapfly=h32 scrapingbee=a80 scw=u segment=a32,w44 sendbird=h40,u sendgrid=w69 sendinblue=h64 sentinelone=h80
    sentry=h64,h32 serpapi=h64 shippo=h40 shodan=a32 shopify=h32 signalwire=w50 slack=h32,a24 smartsheet=a37,a26
    snowflake=w100 snyk=u sonar=h40 sonarcloud=h40 sonarqube=h40 sparkpost=h40 splunk=u spoonacular=h32 spotify=h32
    spotinst=h64 square=w60 squarespace=u statuscake=a20 statuspage=u stormglass=u strava=h40 stripe=w32 sumo=a64,a14
    sumologic=a64,a14 surveymonkey=w85 swell=w32 tableau=w22 tatum=u teamcity=w100 telegram=w45 testrail=w20 thinkific=u
    ticketmaster=a32 tinify=a32 tinypng=a32 toggl=h32 tomorrow=a32 tomtom=a32 travis=w22 travisci=w22 trello=h32,h64
    twilio=h32 twitch=l30 twitter=a25,a50,w45,a45,w50 typeform=w44 unsplash=w43 upstash=w60,u uptimerobot=w30 urlscan=u
    userstack=h32 vercel=a24 verimail=a32 virustotal=h64 vonage=h8,a16 vultr=l36 wakatime=u wandb=h40 weatherbit=h32
    weatherstack=h32 webex=w64,w106 webflow=h64 wepay=h64 whoxy=h33 wistia=h64 wiz=a53,w64 wolfram=w17 woocommerce=h40
    wrike=w180 xai=w80 xero=a32 yandex=w39 yelp=w128 youtube=w39 zapier=w32 zendesk=a40 zenscrape=u zerotier=a32
    zipcode=u zoho=h64 zonka=w36 zoom=w22 zoominfo=w40
    """.split()
)

# These are also everyday words; they count only as a whole word, with a credential's word after it.
_COMMON = frozenset(
    """
    ado adobe agora aha apollo azure bing box branch braze buddy bunny capsule chief cisco coda devops duo
    elastic expo facebook figma fixer float github google groove harvest hive hunter keen kraken line linear
    linkedin lob loom moderation monday mux notion oracle parse pendo persona phrase pivotal polygon privacy
    prospect redis render segment slack square stripe sumo swell tomorrow travis wiz youtube zoom
    """.split()
)
_RUN = r"[A-Za-z0-9][\w.+/~:|-]{13,4000}+={0,2}"
# A credential's name glued to its value by a hyphen or dot, as in notes: `acme-SECRET-1f3a…`.
_GLUED = r"[\w.-]{0,60}(?:key|token|secret|private|access|apikey)[a-z]{0,12}[-.:]+(?=[A-Za-z0-9])"
_SIGN = r"(?:=>|:=|->|[=:>,(]|\b(?:is|key|token|secret|password|id|access|private))[\s\"'`*(\[{\\:=]{0,8}"
_GAP = r"[\w .\[\]\"'`()*/{}$@!-]{0,44}?"
_WORD = r"key|token|secret|private|access|auth|pass(?:w(?:or)?d)?|pwd|cred(?:ential)?|psk"
_WORDS = ("key", "token", "secret", "private", "access", "auth", "pass", "pwd", "cred", "psk")
# From a credential's word to the value: the rest of the name, and perhaps a sign.
_TO_VALUE = r"[\w.]{0,12}+(?P<sign>[\s\"'`*\])}]{0,4}(?:=>|:=|->|=|:|>|,|\()?[\s\"'`*(\[{\\:=-]{1,6})\Z"
_PARTS = r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+"
# How far before a word and after its beginning anything is read, where the word is no longer than this.
_SHORT = 200
_BACK, _AHEAD = 100, _SHORT + 100
_CHARS = {"h": "[0-9a-fA-F]", "l": "[a-z0-9]", "a": "[A-Za-z0-9]", "w": r"[\w.-]", "b": r"[\w+/=-]", "d": "[0-9]"}


@cache
def _shapes(vendor: str) -> re.Pattern[str]:
    forms = (U if shape == "u" else f"{_CHARS[shape[0]]}{{{shape[1:]}}}" for shape in VENDORS[vendor].split(","))
    return re.compile("|".join(forms))


def find(text: str, words: list[tuple[int, str]]) -> Iterator[Found]:
    """Yield (rule, description, start, end) of each key that stands right after a vendor's or a credential's name."""
    repeats: Repeats[list[Found]] = Repeats(text, _BACK, _AHEAD)
    for at, word in words:
        if len(word) > _SHORT:
            yield from _in_word(text, at, word)
            continue
        found = repeats.at(at)
        if found is None:
            spans = _in_word(text, at, word)
            found = repeats.note(at, [(rule, what, low - at, high - at) for rule, what, low, high in spans])
        for rule_id, description, low, high in found:
            yield rule_id, description, at + low, at + high


def _in_word(text: str, at: int, word: str) -> Iterator[Found]:
    for run in pattern(_RUN).finditer(word):
        if "://" in run[0]:
            continue  # an address; what follows its `?` is a run of its own
        start, value = at + run.start(), run[0].rstrip(".:-/|~")
        glued = pattern(_GLUED).match(value)
        if glued and len(value) - glued.end() >= 14:
            start, value = start + glued.end(), value[glued.end() :]
        before = _before(text, start)
        end = start + len(value)
        if not before or before[-1] in "/_+%?&@#$" or text[end : end + 1] == "(" or is_elided(text, end):
            continue
        parts = {part.lower() for part in exact(_PARTS).findall(before)}
        near = parts & VENDORS.keys()
        named = _is_named(value, before)
        if not (near or named) or not is_random(value, 14):
            continue
        vendor = next((v for v in sorted(near) if _is_key_of(v, value, before)), None)
        if vendor:
            yield f"{vendor}-key", f"{vendor} key", start, end
        elif named and not counts_up(value.lower()):
            yield "named-secret", "secret after a credential's name", start, end


def _before(text: str, start: int) -> str:
    """What stands before the value on its line, or the short line above where it stands alone (`API key:`)."""
    head, _, line = text[max(0, start - 72) : start].rpartition("\n")
    if line.strip(" \t>`\"'*-") or not head.strip():
        return line
    above = pattern(r"\s*(?:`{3}\w*)?[\s:]*\Z").sub("", head[-72:]).rpartition("\n")[2]
    return above + ": " if len(above) < 60 else line


def _is_key_of(vendor: str, value: str, before: str) -> bool:
    gap = before[before.lower().rfind(vendor) + len(vendor) :].lower()
    if vendor in _COMMON and (gap[:1].isalpha() or not pattern(_WORD).search(gap)):
        return False  # "the build box is SHA256:…"
    if exact(r"commit|sha\d*\b|hash|digest|checksum|rev\b|md5").search(gap):
        return False
    shaped = bool(_shapes(vendor).fullmatch(value))
    if not pattern(_GAP + _SIGN).fullmatch(gap):
        return shaped and vendor not in _COMMON and gap.isspace()
    if exact(r"(?<!key)[_ .-]?id\W*\Z").search(gap):
        return False
    return shaped or (len(value) >= 20 and not is_digest(value) and "/" not in value)


def _is_named(value: str, before: str) -> bool:
    lowered = before.lower().replace("\u0131", "i").replace("\u017f", "s")  # as a pattern that ignores case does
    if not any(word in lowered for word in _WORDS):
        return False  # as nearly always, and quicker to tell
    word = next(iter(list(pattern(_WORD).finditer(before))[-1:]), None)  # the nearest
    match = word and pattern(_TO_VALUE).match(before, word.end())
    if not word or not match or value.count("/") > 2:
        return False
    name = before[max(0, word.start() - 30) : match.start("sign")]
    own = exact(r"[^\w.-]").split(name)[-1]
    if not exact(r"[=:>,(]").search(match["sign"]) and len(value) < 20 and not word[0].isupper():
        return False  # only blanks or a hyphen between them: prose has "key" and "access" before many things
    compound = len(own.rstrip("s")) > len(word[0]) or word[0].isupper()
    if not compound and (is_digest(value) or word[0].lower() in ("access", "private", "auth")):
        return False
    return word[0] in ("ACCESS", "PRIVATE") or bool(kind_of(name[-42:]))
