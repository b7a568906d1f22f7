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
  /(?<!\b(?:mr|mrs|ms|dr|st|prof|vs|e\.g|i\.e|no|approx|\p{L}))[.!?]+(?=\s|$)|\n+|;\s+|,? (?:and|but|so|while) (?=(?:i|my|we|our)\b(?! (?:we|i)\b))/giu

function sentencesOf(text: string): readonly string[] {
  const sentences: string[] = []
  let from = 0
  for (const match of text.matchAll(SENTENCE_END)) {
    sentences.push(text.slice(from, match.index + match[0].trimEnd().length))
    from = match.index + match[0].length
  }
  sentences.push(text.slice(from))
  return sentences.map((each) => each.replaceAll(/\s+/g, ' ').trim()).filter((each) => each.length >= MIN_CHARS)
}

const REMEMBER =
  /^(?:(?:please|also|and|ok(?:ay)?|btw|by the way)[, ]+)*(?:remember|note|keep in mind|do not forget|don['’]t forget|make a note|for the record|fyi)[,:]?(?: for (?:later|next time))?(?: (?:of|that))?[,:]? +/i
const CORRECTION =
  /^(?:(?:oh|no|sorry|wait|well|ok(?:ay)?|hm+)[,.]? +)*(?:actually|correction|i was wrong|scratch that|update)[,:]? +/i
const LEAD_IN =
  /^(?:(?:hi|hello|hey)(?: there)?|by the way|btw|oh|so|also|and|but|well|ok(?:ay)?|yes|yeah|fyi|just so you know|for context|anyway)[,:!]? +/i
const ENDED =
  /\b(?:no longer|not any ?more|any ?more\b|used to|stopped|quit|gave up|left|broke up|not .{1,40} but|instead of|switched|changed|moved|renamed|cancelled|canceled|postponed|rescheduled|now)\b/i
const QUESTION =
  /\?$|^(?:what|who|whom|where|when|why|how|which|is|are|am|do|does|did|can|could|would|will|should|shall|may|have you|has|was|were)\b(?!.* \bis\b .*!$)/i
const REQUEST =
  /^(?:please|can you|could you|would you|will you|tell|show|write|give|find|make|create|explain|summari[sz]e|translate|list|help|send|call the|open|run|fix|check|search|read|add|remove|delete|use|try|let['’]s|ignore|forget|from now on|always|never|you)\b/i
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
  if (text.length < MIN_CHARS || QUESTION.test(text)) return undefined
  if (!asked && (REQUEST.test(text) || UNSURE.test(text) || NOBODY.test(text))) return undefined
  if (asked && isInstruction(text)) return undefined
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
    corrects: corrects || ENDED.test(text),
    relations: relation ? triples(relation, speaker) : [],
  }
}

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

/** In their order; the first one that fits decides. */
const RULES: readonly { readonly pattern: RegExp; readonly known: (match: RegExpExecArray) => Known | undefined }[] = [
  {
    pattern: rule(`\\b(?:my name is|my name['’]s|(?:you can |please )?call me|i['’]?m called|i go by) ${NAME_WORDS}`),
    known: () => ({ category: 'personal_detail', subject: 'name' }),
  },
  {
    pattern: rule(
      `${I}(?:live|living|reside|based|moved|move|relocated|settled|am based|are based|have moved|am living)(?: (?:here|back|over|out|down|up))?(?: .{0,30}?)?(?: in| to| near| into) ${NAME_WORDS}`,
    ),
    known: ([, place = '']) => ({
      category: 'personal_detail',
      subject: 'residence',
      relation: { name: 'located_in', object: place, type: 'location' },
    }),
  },
  {
    pattern: rule(
      `${I}(?:work|working|worked|employed|joined|started|start|am working|am employed|have joined)(?: .{0,40}?)?(?: at| for| with|(?<=joined)) ${NAME_WORDS}`,
    ),
    known: ([, place = '']) => ({
      category: 'personal_detail',
      subject: 'employer',
      relation: { name: 'works_at', object: place, type: 'organization' },
    }),
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
    known: ([, who = '']) => ({ category: 'personal_detail', subject: `my ${who.toLowerCase().trim()}` }),
  },
  {
    pattern: rule(`\\bmy ((?:[\\p{L}'’-]+ ){0,3}?[\\p{L}'’-]+?)['’]s name is `),
    known: ([, who = '']) => ({ category: 'personal_detail', subject: `my ${who.toLowerCase().trim()}` }),
  },
  {
    pattern: rule(
      `\\bmy (?:[\\p{L}'’-]+ ){1,4}?(?:is|are|was|has|have|had|lives?|works?|studies|likes?|loves?|plays?|comes?|goes|got|broke|will|turned|moved|started|runs?|teaches|speaks|owns?|hates?|needs?|wants?|starts?|arrives?|died|drives?|uses?|visits?)\\b`,
    ),
    known: () => ({ category: 'personal_detail' }),
  },
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
      `${I}(?:own|have|got|bought|drive|ride|keep|adopted|sold|married|was born|were born|grew up|come from|am from|am married|am engaged|am divorced|am \\d|turned \\d|weigh|wear|use|run|swim|cycle|go|take|met|visited|booked|plan|fly|travel|volunteer|collect|sing|paint|cook|bake|wrote|won|broke|lost|signed up|signed|finished|quit|stopped|switched|changed|meditate|suffer|train|read|subscribe|pay|rent|built|planning|training|writing|reading|saving|getting|expecting|visiting|flying|travelling|traveling|taking|going)\\b`,
    ),
    known: () => ({ category: 'personal_detail' }),
  },
  {
    pattern: rule(
      `\\b(?:i['’]m|i am|we['’]re|we are) ${ADVERB}(?:from|married|engaged|divorced|single|retired|pregnant|expecting|\\d{1,3} years|an?|the|on|in)\\b`,
    ),
    known: () => ({ category: 'personal_detail' }),
  },
]
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

function triples({ name, object, type }: NonNullable<Known['relation']>, speaker: string): readonly Triple[] {
  const [found] = PROPER.exec(object) ?? []
  if (found === undefined) return []
  const named = found.replace(/[.,;:]+$/, '')
  return [{ subject: speaker, subject_type: 'person', relation: name, object: named, object_type: type }]
}
