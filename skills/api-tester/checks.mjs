import { isDeepStrictEqual } from 'node:util'

const show = (value) => {
  const text = JSON.stringify(value) ?? 'nothing'
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}
const typeOf = (value) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value)

/** `{ found, value }` at a path such as `items[0].id`. */
function at(value, path) {
  const keys = path
    .replace(/^\$\.?/, '')
    .split(/[.[\]]+/)
    .filter((key) => key !== '')
  let found = value
  for (const key of keys) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) return { found: false }
    found = found[key]
  }
  return { found: true, value: found }
}

const comparisons = {
  equal: ({ found, value }, expected) => found && isDeepStrictEqual(value, expected),
  contains: ({ found, value }, expected) =>
    found &&
    (Array.isArray(value)
      ? value.some((each) => isDeepStrictEqual(each, expected))
      : String(value).includes(String(expected))),
  present: ({ found }) => found,
  missing: ({ found }) => !found,
  type: ({ found, value }, expected) => found && typeOf(value) === expected,
  length: ({ found, value }, expected) => found && value?.length === expected,
}

/** `{ check, passed, got }` for each expectation. */
export function check({ status, max_ms: maxMs, headers = {}, contains = [], json = [] }, answer) {
  const checks = []
  const add = (text, passed, got) => checks.push({ check: text, passed, ...(!passed && { got }) })
  if (status !== undefined)
    add(`status ${[status].flat().join(' or ')}`, [status].flat().includes(answer.status), answer.status)
  if (maxMs !== undefined) add(`within ${maxMs} ms`, answer.ms <= maxMs, answer.ms)
  for (const [name, part] of Object.entries(headers)) {
    const value = answer.headers[name.toLowerCase()]
    add(
      `header ${name} holds ${show(part)}`,
      value !== undefined && String(value).includes(part),
      value ?? 'no such header',
    )
  }
  for (const part of contains)
    add(`body holds ${show(part)}`, answer.text.includes(part), `${answer.text.length} characters without it`)
  for (const { path, is, value } of json) {
    const found = answer.parsed ? at(answer.parsed.value, path) : { found: false }
    const text = `${path || 'the whole'} ${is}${value === undefined ? '' : ` ${show(value)}`}`
    add(
      text,
      comparisons[is](found, value),
      answer.parsed ? (found.found ? show(found.value) : 'nothing there') : 'no JSON',
    )
  }
  return checks
}
