import { json } from 'node:stream/consumers'
import { createContext, Script } from 'node:vm'
import { explain } from './explain.mjs'

/** Milliseconds for one text, and for all of them. */
const TEXT_MS = 1000
const TOTAL_MS = 5000
const MAX_FOUND = 20
const MAX_SHOWN = 300

/** Runs in a context of its own, because only that can be ended while a match is searched. */
const search = new Script(`
  const found = []
  let more = false
  for (const match of text.matchAll(new RegExp(pattern, flags.includes('g') ? flags : flags + 'g'))) {
    if (found.length === ${MAX_FOUND}) { more = true; break }
    found.push({ match: match[0], index: match.index, groups: match.slice(1), named: match.groups ?? {} })
  }
  JSON.stringify({
    found, more, replaced: replacement === undefined ? undefined : text.replace(new RegExp(pattern, flags), replacement),
  })
`)

const cut = (text) => (text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}… (${text.length} characters)` : text)

function readPattern(pattern, flags) {
  try {
    return new RegExp(pattern, flags)
  } catch (cause) {
    throw new Error(cause.message.replace(/^Invalid regular expression: /, 'the pattern cannot be used: '), { cause })
  }
}

/** The matches in a text; `undefined` when the time is over. */
function find(values, timeout) {
  try {
    return JSON.parse(search.runInContext(createContext(values), { timeout }))
  } catch (error) {
    if (error.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined
    throw error
  }
}

function show({ match, index, groups, named }) {
  const names = Object.entries(named)
  return {
    match: cut(match),
    index,
    ...(groups.length > 0 && { groups: groups.map((group) => (group === null ? null : cut(group))) }),
    ...(names.length > 0 && { named: Object.fromEntries(names.map(([name, value]) => [name, cut(value)])) }),
  }
}

function tryOn({ pattern, flags, replacement }, { text, expected }, ends) {
  const timeout = Math.min(TEXT_MS, Math.ceil(ends - performance.now()))
  const shown = { text: cut(text), ...(expected !== undefined && { expected: expected ? 'match' : 'no match' }) }
  if (timeout <= 0) return { ...shown, outcome: 'not tried: no time is left', correct: false }
  const answer = find({ pattern, flags, replacement, text }, timeout)
  if (answer === undefined) return { ...shown, outcome: `hangs: ended after ${timeout} ms`, correct: false }
  const { found, more, replaced } = answer
  return {
    ...shown,
    outcome: found.length > 0 ? 'match' : 'no match',
    ...(expected !== undefined && { correct: expected === found.length > 0 }),
    ...(found.length > 0 && { matches: found.map(show), ...(more && { more: true }) }),
    ...(replaced !== undefined && { replaced: cut(replaced) }),
  }
}

function test({ pattern, flags = '', should_match: yes = [], should_not_match: no = [], texts = [], replacement }) {
  const used = readPattern(pattern, flags)
  const cases = [
    ...yes.map((text) => ({ text, expected: true })),
    ...no.map((text) => ({ text, expected: false })),
    ...texts.map((text) => ({ text })),
  ]
  if (cases.length === 0) throw new Error('there is nothing to try it on: give should_match, should_not_match or texts')
  const ends = performance.now() + TOTAL_MS
  const results = cases.map((each) => tryOn({ pattern, flags, replacement }, each, ends))
  const hanging = results.filter(({ outcome }) => outcome.startsWith('hangs')).length
  return {
    pattern: String(used),
    wrong: results.filter(({ correct }) => correct === false).length,
    ...(hanging > 0 && { hangs: hanging, advice: explain(pattern, flags).risks }),
    results,
  }
}

try {
  const { tool, input } = await json(process.stdin)
  if (tool === 'explain') readPattern(input.pattern, input.flags ?? '')
  const answer = tool === 'test' ? test(input) : explain(input.pattern, input.flags ?? '')
  console.log(JSON.stringify(answer))
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
