import type { Fact, Triple } from './fact.ts'

/**
 * The facts of an English text by rules: what the offline model does in place of a real one. It finds what is said
 * plainly in the first person, and misses what is only implied. Pure and deterministic.
 */
export function extractByRules(text: string, speaker = 'the user'): readonly Fact[] {
  const facts: Fact[] = []
  for (const sentence of sentencesOf(text)) {
    const fact = factOf(sentence, speaker)
    if (fact && !facts.some(({ content }) => content === fact.content)) facts.push(fact)
    if (facts.length >= MAX_FACTS) break
  }
  return facts
}

const MAX_FACTS = 20
const MIN_CHARS = 8
const MAX_CHARS = 400
/** The end of a sentence; not the dot of an abbreviation, an initial or a number. */
const SENTENCE_END =
  /(?<!\b(?:mr|mrs|ms|dr|st|prof|vs|e\.g|i\.e|no|approx|\p{L}))[.!?]+(?=\s|$)|\n+|;\s+|,? (?:and|but|so|while) (?=(?:i|my|we|our)\b(?! (?:we|i)\b))|(?<=[\p{L}\d'’-]+ [\p{L}\d'’-]+), (?=(?:i|my|our|his|her|their) (?:[\p{L}'’-]+ ){1,2}(?:is|are|was)\b)/giu

function sentencesOf(text: string): readonly string[] {
  const sentences: string[] = []
  let from = 0
  for (const match of text.matchAll(SENTENCE_END)) {
    // A joiner belongs to neither part.
    const [end = ''] = /^[.!?]*/.exec(match[0]) ?? []
    sentences.push(text.slice(from, match.index) + end)
    from = match.index + match[0].length
  }
  sentences.push(text.slice(from))
  return sentences
    .map((each) => each.replaceAll(/\s+/g, ' ').trim())
    .flatMap(apart)
    .filter((each) => each.length >= MIN_CHARS)
}

const STATES = 'am|are|live|work|own|study|teach|speak|drive|play|prefer|like|love|hate'
/** "I live in Graz and work at Acme": two facts, of which one may change without the other. */
const TWO_STATES = new RegExp(`^(.*?\\b(I|we) (?:${STATES}) (?!to\\b)\\S.*?),? and (?=(?:${STATES}) \\S)(.*)$`, 'iu')
function apart(sentence: string): readonly string[] {
  const [, first, who, second] = (sentence.length <= MAX_CHARS && TWO_STATES.exec(sentence)) || []
  return first === undefined ? [sentence] : [first, `${who} ${second}`]
}

const REMEMBER =
  /^(?:(?:please|also|and|ok(?:ay)?|btw|by the way)[, ]+)*(?:remember|note|keep in mind|do not forget|don['’]t forget|make a note|for the record|fyi)[,:]?(?: for (?:later|next time))?(?: (?:of|that))?[,:]? +/i
const CORRECTION =
  /^(?:(?:oh|no|sorry|wait|well|ok(?:ay)?|hm+)[,.]? +)*(?:actually|correction|i was wrong|scratch that|update)[,:]? +/i
const LEAD_IN =
  /^(?:(?:hi|hello|hey)(?: there)?|by the way|btw|oh|so|also|and|but|well|ok(?:ay)?|yes|yeah|fyi|just so you know|for context|anyway)[,:!]? +/i
const ENDED =
  /\b(?:no longer|not any ?more|any ?more\b|used to|stopped|quit|gave up|left|broke up|not .{1,40} but|instead of|switched|swapped|changed|moved|renamed|pushed (?:back|to)|retired|cancelled|canceled|postponed|rescheduled|now)\b/i
const QUESTION =
  /\?$|^(?:what|who|whom|where|when|why|how|which|is|are|am|do|does|did|can|could|would|will|should|shall|may|have you|has|was|were)\b(?!.* \bis\b .*!$)/i
const REQUEST =
  /^(?:please|can you|could you|would you|will you|tell|show|write|give|find|make|create|explain|summari[sz]e|translate|list|help|send|call the|open|run|fix|check|search|read|add|remove|delete|use|try|let['’]s|ignore|forget|from now on|always|never|you)\b/i
/** What somebody does not want to be offered. */
const UNWANTED = /\b(?:never|don['’]t|do not)(?: ever)? (?:suggest|recommend|offer)\b/i
const WHEN_ANSWERING = /^when(?:ever)? you (?:answer|reply|respond|explain)\b[^?]*$/i
/** A line of a program or of its output. */
const CODE = /[{}<>=\\`]|::|\w\(|\w\.\w+\(|\b\w+(?:Error|Exception)\b/
const UNSURE =
  /^(?:if|unless|suppose|imagine|let['’]s say|assume|maybe|perhaps|i (?:think|guess|wonder|suppose|would|could|might|may|wish|hope)|i['’]d)\b/i
const NOBODY =
  /^i (?:want|need|would like|have|['’]ve got|am going|think|was wondering|have to|am trying) (?:you|to (?:know|ask|see|find|understand|get|write|make)|a question|an idea|help|no idea)\b/i

function factOf(sentence: string, speaker: string): Fact | undefined {
  if (sentence.length > MAX_CHARS || /^["“]/.test(sentence)) return undefined
  let text = sentence
  for (let step = 0; step < 3; step++) text = text.replace(LEAD_IN, '')
  const corrects = CORRECTION.test(text)
  text = text.replace(CORRECTION, '')
  const asked = REMEMBER.test(text)
  text = text.replace(REMEMBER, '')
  if (text.length < MIN_CHARS || (asked ? isInstruction(text) : isNoStatement(text)) || isQuestion(text))
    return undefined
  const known = classify(text)
  if (!known && !asked) return undefined
  const { category, subject, relation } = known ?? {
    category: 'personal_detail',
    subject: undefined,
    relation: undefined,
  }
  const content = /[.!]$/.test(text) ? text.replace(/!+$/, '.') : `${text}.`
  return {
    content: content.charAt(0).toUpperCase() + content.slice(1),
    category,
    confidence: asked ? 0.95 : corrects ? 0.9 : 0.8,
    tags: [category],
    subject,
    corrects: corrects || (ENDED.test(text) && !/\balso\b/i.test(text)),
    relations: relation ? triples(relation, speaker) : [],
  }
}

const isQuestion = (text: string): boolean => QUESTION.test(text) && !WHEN_ANSWERING.test(text)
const isNoStatement = (text: string): boolean =>
  CODE.test(text) || (REQUEST.test(text) && !UNWANTED.test(text)) || UNSURE.test(text) || NOBODY.test(text)

/** Asked to remember how to act, by whoever speaks: a rule for the assistant and no fact, unless it is about its style. */
function isInstruction(text: string): boolean {
  if (!/^(?:to|you|ignore|always|never|whenever|from now on)\b/i.test(text)) return false
  return !/^(?:to )?(?:always |never )?(?:call|answer|reply|write|address|use|speak|keep)\b/i.test(text)
}

interface Known {
  readonly category: Fact['category']
  readonly subject?: string | undefined
  readonly relation?: { readonly name: string; readonly object: string; readonly type: string } | undefined
}
const ADVERB = `(?:(?:also|just|now|really|always|usually|currently|still|never|recently|finally|actually|absolutely|only|mostly|often|mainly|no longer|don['’]t|do not|can['’]t|cannot) )*`
const I = `\\b(?:i|we)(?:['’](?:m|ve|re))? ${ADVERB}`
const rule = (pattern: string): RegExp => new RegExp(pattern, 'iu')
const NAME_WORDS = `(\\p{L}[\\p{L}\\p{M}'’&.-]*(?: (?:of |de |la |the )?[\\p{Lu}\\d][\\p{L}\\p{M}\\d'’&.-]*){0,4})`

const MONTH =
  '(?:jan(?:uary)?|feb(?:ruary)?|march|april|may|june|july|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)'
const WEEKDAY = '(?:mon|tues|wednes|thurs|fri|satur|sun)days?'
/** A day or a time of day. */
const DATE = `\\b(?:\\d{1,2}(?:st|nd|rd|th)?(?: of)? ${MONTH}|${MONTH} \\d{1,2}(?:st|nd|rd|th)?|(?:on|every|each|next|until|from) ${WEEKDAY}|on the \\d{1,2}(?:st|nd|rd|th)|(?:in|by|each|every|of) (?:${MONTH}|spring|summer|autumn|winter)|at (?:\\d{1,2}(?::\\d\\d)?|half past \\p{L}+|(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|noon))|\\d{1,2}:\\d\\d)\\b`

/** In their order; the first one that fits decides. */
const RULES: readonly { readonly pattern: RegExp; readonly known: (match: RegExpExecArray) => Known | undefined }[] = [
  {
    pattern: rule(`\\b(?:my name is|my name['’]s|(?:you can |please )?call me|i['’]?m called|i go by) ${NAME_WORDS}`),
    known: () => ({ category: 'personal_detail', subject: 'name' }),
  },
  {
    pattern: rule(`\\b(?:i['’]?m|i am) ${NAME_WORDS}`),
    known: ([, called = '']) =>
      properName(called)?.includes(' ') ? { category: 'personal_detail', subject: 'name' } : undefined,
  },
  {
    pattern: rule(
      `${I}(?:live|living|reside|based|moved|move|relocated|settled|am based|are based|have moved|am living)(?! (?:it|them|this|that|the|my|our|his|her|an?)\\b)(?: (?:here|back|over|out|down|up))?(?: .{0,30}?)?(?: in| to| near| into) ${NAME_WORDS}`,
    ),
    known: ([, place = '']) => ({
      category: 'personal_detail',
      subject: 'residence',
      relation: { name: 'located_in', object: place, type: 'location' },
    }),
  },
  {
    pattern: rule(
      `${I}(work|working|worked|employed|joined|started|start|am working|am employed|have joined)(?: .{0,40}?)?(?: at| for| with|(?<=joined))(?: the)? ${NAME_WORDS}`,
    ),
    // Somebody joins and starts many things that are no employer.
    known: ([, verb = '', place = '']) =>
      /work|employed/i.test(verb) || properName(place) !== undefined
        ? {
            category: 'personal_detail',
            subject: 'employer',
            relation: { name: 'works_at', object: place, type: 'organization' },
          }
        : undefined,
  },
  {
    pattern: rule(`${I}(?:left|quit|resigned|was laid off|retired)\\b`),
    known: () => ({ category: 'personal_detail', subject: 'employer' }),
  },
  {
    pattern: rule(
      `${I}(?:work as|working as|am (?:now )?(?:an?|the) .*(?:er|or|ist|ian|ant|ect|eon|dent|chef|pilot|nurse|coach|lead|manager|judge)\\b)`,
    ),
    known: () => ({ category: 'personal_detail', subject: 'occupation' }),
  },
  {
    pattern: rule(`\\bmy (?:new |current )?(?:job|role|title|position|profession|occupation) (?:is|was|will be)`),
    known: () => ({ category: 'personal_detail', subject: 'occupation' }),
  },
  {
    pattern: rule(
      `\\bmy (?:all-time |absolute |new )*favou?rite ([\\p{L} -]{2,40}?) (?:is|are|was|has always been|will)\\b`,
    ),
    known: ([, thing = '']) => ({ category: 'preference', subject: `favourite ${thing.toLowerCase()}` }),
  },
  {
    pattern: rule(
      `${I}(?:like|love|prefer|enjoy|hate|dislike|adore|detest|loathe|avoid|stand|fond of|am into|am fond|am crazy about|drink|eat)\\b`,
    ),
    known: () => ({ category: 'preference' }),
  },
  {
    pattern: rule(
      `\\b(?:i['’]m|i am|we are|we['’]re) ${ADVERB}(?:allergic|intolerant|vegetarian|vegan|a vegetarian|a vegan|diabetic|lactose|left-handed|afraid|scared|colou?r-?blind)`,
    ),
    known: () => ({ category: 'personal_detail' }),
  },
  {
    pattern: rule(
      `${I}(?:hated?|frustrated|annoyed|sick of|tired of|fed up)|\\b(?:annoys?|bothers?|frustrates?|drives?) me\\b`,
    ),
    known: () => ({ category: 'frustration' }),
  },
  {
    pattern: rule(
      `\\bmy ((?:[\\p{L}'’-]+ ){0,3}?)(birthday|anniversary|wedding|flight|appointment|deadline|exam|surgery|interview|trip|holiday|vacation|train|visa|passport)\\b.*\\b(?:is|was|leaves|expires|starts|begins|moved|on|at|in)\\b`,
    ),
    known: ([, whose = '', what = '']) => ({
      category: 'personal_detail',
      subject: `${whose}${what}`.toLowerCase().trim(),
    }),
  },
  {
    pattern: rule(
      `\\b(?:the|our) (?:[\\p{L}\\d'’-]+ ){0,4}?(?:project|deadline|release|launch|sprint|team|client|customer|budget|repo(?:sitory)?|stack|database|meeting|stand-?up|server|product|company|office|code ?base)\\b.*\\b(?:is|are|was|has|have|uses?|will|moved?|starts?|runs?|lives?)\\b`,
    ),
    known: () => ({ category: 'project_context' }),
  },
  {
    pattern: rule(
      `\\bwe ${ADVERB}(?:use|are using|deploy|are building|build|run|ship|host|switched|chose|decided|migrated|meet)\\b`,
    ),
    known: () => ({ category: 'project_context' }),
  },
  {
    pattern: rule(`\\bmy ((?:[\\p{L}'’-]+ ){0,3}?[\\p{L}'’-]+?)(?:['’]s name)? (?:is|are|was) (?:called|named) `),
    known: ([, who = '']) => ({ category: 'personal_detail', subject: mine(who) }),
  },
  {
    pattern: rule(`\\bmy ((?:[\\p{L}'’-]+ ){0,3}?[\\p{L}'’-]+?)['’]s name is `),
    known: ([, who = '']) => ({ category: 'personal_detail', subject: mine(who) }),
  },
  {
    pattern: rule(`\\b(?:is|are|was) (?:[\\p{L}'’-]+ ){0,3}?(?:called|named) (.+)`),
    known: ([, called = '']) => (properName(called) === undefined ? undefined : { category: 'personal_detail' }),
  },
  {
    pattern: rule(
      `\\b(?:my|our|his|her|their) (?:[\\p{L}'’.-]+ ){1,4}?(?:is|are|was|has|have|had|lives?|works?|studies|likes?|loves?|plays?|comes?|goes|got|broke|will|turned|turns|moved|started|runs?|teaches|taught|speaks|owns?|hates?|needs?|wants?|prefers?|starts?|arrives?|died|drives?|uses?|visits?|sits?|stands|costs?|expires?|opens|closes|joined|left|bought|sold|sells?)\\b`,
    ),
    known: () => ({ category: 'personal_detail' }),
  },
  {
    pattern: rule(`^(?:mum|mom|dad|granny|gran|grandma|nan|grandad|grandpa)(?:['’]s)? \\p{L}`),
    known: () => ({ category: 'personal_detail' }),
  },
  {
    pattern: rule(
      `\\b(?:is|are|was|will be|happens?|takes? place|goes|starts?|begins?|ends?|closes?|opens?|leaves?|arrives?|expires?|due|delivered|moved|pushed|postponed|rescheduled|renewed|planned|invited|will)\\b.{0,80}?${DATE}`,
    ),
    known: () => ({ category: 'personal_detail' }),
  },
  {
    pattern: rule(
      `\\b(?:got|gets|is|was|were|has been|have been) (?:moved|postponed|pushed (?:back|to)|rescheduled|cancell?ed|renamed|delayed|brought forward)\\b`,
    ),
    known: () => ({ category: 'project_context' }),
  },
  {
    pattern: rule(
      `\\b(?:is|are|costs?|pays?|paid|earns?|agreed|went (?:up|down))\\b.{0,40}?(?:[€$£¥] ?\\d|\\b\\d[\\d,.]*k? (?:quid|euros?|dollars?|pounds?|yen|francs?)\\b)`,
    ),
    known: () => ({ category: 'personal_detail' }),
  },
  {
    pattern: rule(
      `^(?:just |recently |finally )?(?:moved (?:in with|to)|booked|training for|cutting out|been (?:there|here|with)) `,
    ),
    known: () => ({ category: 'personal_detail' }),
  },
  {
    pattern: rule(`\\b\\p{L}+['’]s (?:\\d+(?:st|nd|rd|th) )?birthday\\b`),
    known: () => ({ category: 'personal_detail' }),
  },
  {
    pattern: rule(`^\\p{L}+ turn(?:s|ed) (?:\\d{1,3}|\\p{L}+ty|\\p{L}+teen)\\b`),
    known: () => ({ category: 'personal_detail' }),
  },
  {
    // What a thing is by name, or where from.
    pattern: rule(
      `^(?:[\\p{L}'’-]+ ){1,5}?(?:comes? from|runs? on|(?:is|are)(?: made by| from| with| at| on| in)?)(?: now)?((?: an?| the)? .{1,80})`,
    ),
    known: ([, named = '']) =>
      /^ (?:(?:a|an|the) )?(?:[\p{Ll}-]+ ){0,3}\p{Lu}\p{Ll}/u.test(named) ? { category: 'personal_detail' } : undefined,
  },
  { pattern: UNWANTED, known: () => ({ category: 'preference' }) },
  {
    pattern: rule(
      `${I}(?:know|speak|speaking|learn|learning|studied|study|studying|graduated|code|program|write|teach|trained|play|am learning|am studying|am fluent|have been)\\b`,
    ),
    known: () => ({ category: 'expertise' }),
  },
  {
    pattern: rule(
      `\\bi ${ADVERB}(?:get up|wake|sleep|go to bed|start work|start my|focus|take breaks|do (?:my|deep)|plan)\\b`,
    ),
    known: () => ({ category: 'work_style' }),
  },
  {
    pattern: rule(
      `${I}(?:own|have|got|bought|drive|ride|keep|adopted|sold|married|was born|were born|grew up|come from|am from|am married|am engaged|am divorced|am \\d|turned \\d|weigh|wear|use|run|swim|cycle|go|take|met|visited|booked|plan|fly|travel|volunteer|collect|sing|paint|cook|bake|wrote|won|broke|lost|signed up|signed|finished|quit|stopped|switched|swapped|changed|moved|dropped|joined (?:an?|the) (?:[\\p{L}-]+ ){0,2}(?:choir|club|team|band|gym|group|class|course|society|orchestra)|volunteered|celebrated|hired|passed (?:the|my) .{0,20}(?:exam|test|course)|share an?|sell|restock|ship|have gone|went (?:vegan|vegetarian)|meditate|suffer|train|read|subscribe|pay|rent|built|planning|training|writing|reading|saving|getting|expecting|visiting|flying|travelling|traveling|taking|going)\\b`,
    ),
    known: () => ({ category: 'personal_detail' }),
  },
  {
    pattern: rule(
      `\\b(?:i['’]m|i am|we['’]re|we are) ${ADVERB}(?:from|married|engaged|divorced|single|retired|pregnant|expecting|\\d{1,3} years|an?|the|on|in)\\b`,
    ),
    known: () => ({ category: 'personal_detail' }),
  },
  // What has changed, of things and of others.
  {
    pattern: rule(
      `(?:^|[,:] |\\b(?:the|our|my|his|her|their) )(?:[\\p{L}\\d'’-]+ ){0,2}[\\p{L}\\d'’-]+ (?:is|are|has|have|runs?|uses?|wants?|needs?|takes?|orders?|costs?)( now .{2,60}|.{1,60}? (?:now|from now on|rather than \\S+|instead of \\S+)(?=$|[.,!;]))`,
    ),
    known: ([said, value = '']) =>
      !NO_THING.test(said) && /\d|\b\p{Lu}\p{Ll}+|^ (?:now )?(?:on|at|in|by|with|from) /u.test(value)
        ? { category: 'project_context' }
        : undefined,
  },
  {
    // Habits: "I see it now" is none.
    pattern: rule(`${I}(\\p{L}+ .{2,60}?) (?:now|again|instead|any ?more)(?=$|[.,!;])`),
    known: ([, how = '']) =>
      /\b(?:every|each)\b|^(?:see|meet|visit) \p{Lu}\p{Ll}+/u.test(how) ? { category: 'personal_detail' } : undefined,
  },
  {
    pattern: rule(
      `\\b(?:went|changed|moved|switched|shifted) (?:up |down |back )?to (?:\\d|noon\\b|${WEEKDAY}|${MONTH}\\b)|\\b(?:is|are|was|were|has|have|got|['’]s)(?: been| got)? (?:healed|cured|renamed)\\b`,
    ),
    known: () => ({ category: 'personal_detail' }),
  },
  {
    pattern: rule(
      `^((?:(?:mr|mrs|ms|mme|dr)\\.? )?[\\p{L}-]+) (?:has |have )?(?:left|retired|died|quit|resigned|moved|married|graduated|took over)\\b`,
    ),
    known: ([said, who = '']) =>
      /^\p{Lu}/u.test(who) && !NO_THING.test(said) ? { category: 'personal_detail' } : undefined,
  },
  {
    pattern: rule(`([\\p{L}\\d'’-]+) (?:is|are) (?:now )?(?:my|our) (?:[\\p{L}-]+ )?[\\p{L}-]+[.!]?$`),
    known: ([said, what = '']) =>
      /^\p{Lu}/u.test(what) && !NO_THING.test(said) ? { category: 'personal_detail' } : undefined,
  },
  {
    pattern: rule(
      `^(?:from|since|as of) (?:next )?(?:${MONTH}|${WEEKDAY}|month|week)\\b,? (?:i|we)(?:['’](?:m|re)| am| are| work) `,
    ),
    known: () => ({ category: 'personal_detail' }),
  },
]
/** Of whom or what a sentence says nothing lasting, and who is told what to be. */
const NO_THING =
  /\b(?:i|it|this|that|these|those|there|here|he|she|they|we|you|what|which|who|everything|nothing|everyone|everybody|someone|somebody|nobody|people|assistants?|ai|bot|model|system|prompt|instructions?|rules?|polic(?:y|ies)|admin|developer|error|problem|question|answer)\b/i
/** What is mine, whether it is new or not. */
const mine = (what: string): string =>
  `my ${what
    .toLowerCase()
    .replace(/^(?:new|current|former|old) /, '')
    .trim()}`
const STYLE =
  /\b(?:call me|answer|reply|write|respond|speak|address me|keep (?:it|answers|replies))\b.*\b(?:short|brief|brief(?:ly)?|detailed|formal|informal|german|english|french|spanish|bullet|bullets|metric|emoji|first name|lists?|tables?|examples?)\b/i

function classify(text: string): Known | undefined {
  if (STYLE.test(text)) return { category: 'communication_style' }
  for (const { pattern, known } of RULES) {
    const match = pattern.exec(text)
    const found = match && known(match)
    if (found) return found
  }
  return undefined
}

/** A name of several words; nothing where it is no name. */
const PROPER = /^[\p{Lu}\d][\p{L}\p{M}\d'’&.-]*(?: (?:(?:of|de|la|the|van|von) )?[\p{Lu}\d][\p{L}\p{M}\d'’&.-]*)*/u

/** The name that a text begins with. */
function properName(text: string): string | undefined {
  return PROPER.exec(text)?.[0].replace(/[.,;:]+$/, '')
}

function triples({ name, object, type }: NonNullable<Known['relation']>, speaker: string): readonly Triple[] {
  const named = properName(object)
  if (named === undefined) return []
  return [{ subject: speaker, subject_type: 'person', relation: name, object: named, object_type: type }]
}
