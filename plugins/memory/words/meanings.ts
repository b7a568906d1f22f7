import { stem } from './words.ts'

/** Forms that no ending tells, and everyday words that mean nearly the same. A word may be in several. */
const GROUPS = `
  become became|begin began begun start beginning|bite bit bitten|break broke broken|bring brought|build built|burn burnt
  buy bought purchase sell sold seller|catch caught|choose chose chosen pick|come came|draw drew drawn
  drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|find found
  fly flew flown flight|forget forgot forgotten|get got gotten receive|give gave given gift present|go went gone
  grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept|know knew known|lead led|learn learnt study
  lend lent borrow|lose lost|make made|meet met meeting|pay paid cost price fee|ride rode ridden|ring rang rung
  rise rose risen|run ran|see saw seen|send sent ship deliver delivery parcel|shoot shot|show shown|sing sang sung
  sit sat|sleep slept asleep|speak spoke spoken language|spend spent|stand stood|steal stole stolen theft|swim swam swum
  take took taken|teach taught tutor instructor coach trainer|think thought|throw threw thrown|understand understood
  wake woke woken|wear wore worn|win won winner prize|write wrote written author
  man men|woman women|foot feet|tooth teeth|mouse mice|person people
  child children kid son daughter|baby newborn|brother sister sibling|mother mum mom mama parent|father dad papa parent
  husband wife spouse partner married|girlfriend boyfriend partner|grandmother granny grandma gran nan
  grandfather grandpa grandad granddad|friend mate buddy pal|colleague coworker workmate|name called|nickname
  work job employer employed employment occupation profession career|boss manager supervisor chief|retire retirement
  salary earn wage income|landlord landlady|live reside residence town city village home address moved|house flat apartment
  move moved relocate|old age aged born birthday turned birth|car vehicle|bike bicycle cycle|train railway
  travel travelling trip journey holiday vacation|phone telephone|mail email|computer laptop pc|photo photograph picture image
  movie film|song music|book novel|newspaper magazine|like love enjoy fond favourite favorite prefer
  hate dislike loathe|afraid scared fear frightened terrified|allergic allergy intolerant|medicine medication drug pill tablet
  ill sick illness disease|injured injury hurt broken pain|doctor physician gp|physiotherapy physiotherapist physio
  surgery operation|glasses spectacles|finish finished end ended|due deadline|dog puppy|cat kitten|food meal dish recipe
  breakfast lunch dinner supper|colour color|big large size|tall height|weigh weight|expire expires expiry valid
  insurance insured insurer|quit stop stopped|garden yard|shop store|holiday leave|exam test|lesson class course
`

let alternatives: ReadonlyMap<string, readonly string[]> | undefined

/** What a memory may have instead of a word, both as `wordsOf` makes them. */
export function alternativesOf(word: string): readonly string[] {
  alternatives ??= readGroups()
  return [...(alternatives.get(word) ?? []), ...derivedFrom(word)]
}

function readGroups(): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, Set<string>>()
  for (const group of GROUPS.trim().split(/\s*[|\n]\s*/)) {
    const stems = new Set(group.split(' ').map(stem))
    for (const one of stems) found.set(one, new Set([...(found.get(one) ?? []), ...stems]))
  }
  return new Map([...found].map(([one, all]) => [one, [...all].filter((other) => other !== one)]))
}

/** Of "audit" "auditor", and the other way round; of "swimm" "swim". */
function derivedFrom(word: string): readonly string[] {
  if (!/^[a-z]{3,}$/.test(word)) return []
  const act = /^(.{4,})[eo]r$/.exec(word)?.[1]
  const single = /^(.*([bdgklmnprt]))\2$/.exec(word)?.[1]
  const isDoubled = /[^aeiou][aeiou][bdgklmnprt]$/.test(word)
  return [
    ...(act === undefined ? [`${word}er`, `${word}or`] : [act]),
    ...(single === undefined ? [] : [single]),
    ...(isDoubled ? [`${word}${word.at(-1)}`] : []),
  ]
}
