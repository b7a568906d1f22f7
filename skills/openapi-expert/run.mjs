import { json } from 'node:stream/consumers'
import { isObject, listOf, operationsOf, parametersOf, readDocument, follow } from './document.mjs'
import { lint } from './lint.mjs'

/** Characters of one operation with all it refers to. */
const MAX_OPERATION = 40_000
const MAX_REFERENCES = 500
const MAX_NAMES = 200

const securityOf = (document, { operation }) => {
  const stated = operation.security ?? document.security
  if (stated === undefined) return 'not stated'
  const ways = listOf(stated).map((each) => Object.keys(each).join(' and ') || 'none')
  return ways.join(' or ') || 'none'
}
const rowOf = (document, each) => ({
  operation: `${each.method} ${each.path}`,
  ...(each.operation.operationId !== undefined && { id: each.operation.operationId }),
  ...(each.operation.summary !== undefined && { summary: String(each.operation.summary).slice(0, 150) }),
  ...(listOf(each.operation.tags).length > 0 && { tags: each.operation.tags }),
  security: securityOf(document, each),
  ...(each.operation.deprecated === true && { deprecated: true }),
})

function outline({ path, find = '', limit = 100 }) {
  const document = readDocument(path)
  const words = find.toLowerCase().split(/\s+/).filter(Boolean)
  const all = operationsOf(document).map((each) => rowOf(document, each))
  const found = all.filter((row) => words.every((word) => JSON.stringify(row).toLowerCase().includes(word)))
  const schemas = Object.keys(document.components?.schemas ?? document.definitions ?? {})
  const schemes = document.components?.securitySchemes ?? document.securityDefinitions ?? {}
  return {
    version: String(document.openapi ?? document.swagger),
    title: document.info?.title,
    api_version: document.info?.version,
    servers: listOf(document.servers).map(({ url }) => url),
    ...(document.host !== undefined && { host: `${document.host}${document.basePath ?? ''}` }),
    security: Object.fromEntries(
      Object.entries(schemes).map(([name, { type, scheme, in: place, name: key }]) => [
        name,
        [type, scheme, place, key].filter((part) => part !== undefined).join(' '),
      ]),
    ),
    schemas: schemas.slice(0, MAX_NAMES),
    ...(schemas.length > MAX_NAMES && { schemas_total: schemas.length }),
    operations: found.slice(0, limit),
    operations_found: found.length,
    operations_total: all.length,
  }
}

/**
 * With what it refers to in place; one that refers to itself, or comes after too many others, keeps its reference.
 * `budget.left` counts the references that are followed.
 */
function inline(document, value, budget, above = []) {
  if (Array.isArray(value)) return value.map((each) => inline(document, each, budget, above))
  if (!isObject(value)) return value
  const { $ref: reference, ...beside } = value
  if (typeof reference === 'string') {
    const target = follow(document, reference)
    if (target === undefined || above.includes(reference) || budget.left-- <= 0) return value
    const found = inline(document, target, budget, [...above, reference])
    return isObject(found) ? { ...found, ...inline(document, beside, budget, above) } : found
  }
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, inline(document, each, budget, above)]))
}

function operation({ path, operation: wanted }) {
  const document = readDocument(path)
  const all = operationsOf(document)
  const folded = wanted.trim().replace(/\s+/g, ' ').toLowerCase()
  const found =
    all.find((each) => each.operation.operationId === wanted.trim()) ??
    all.find(({ method, path: at }) => `${method} ${at}`.toLowerCase() === folded)
  if (!found) {
    const near = all.filter((each) =>
      folded.split(' ').some((word) => JSON.stringify(rowOf(document, each)).toLowerCase().includes(word)),
    )
    const names = near.slice(0, 10).map((each) => `${each.method} ${each.path}`)
    throw new Error(`there is no operation "${wanted}"${names.length > 0 ? `; near it: ${names.join(', ')}` : ''}`)
  }
  const { parameters: _, ...rest } = found.operation
  const budget = { left: MAX_REFERENCES }
  const whole = {
    operation: `${found.method} ${found.path}`,
    servers: listOf(found.operation.servers ?? found.item.servers ?? document.servers).map(({ url }) => url),
    security_in_words: securityOf(document, found),
    parameters: inline(document, parametersOf(document, found), budget),
    ...inline(document, rest, budget),
  }
  if (JSON.stringify(whole).length <= MAX_OPERATION) return whole
  return {
    ...rowOf(document, found),
    parameters: parametersOf(document, found),
    ...rest,
    note: 'references are left as they are: with them it is too long',
  }
}

function lintFile({ path, limit = 100 }) {
  const found = lint(readDocument(path))
  const count = (severity) => found.filter((each) => each.severity === severity).length
  return { errors: count('error'), warnings: count('warning'), hints: count('hint'), findings: found.slice(0, limit) }
}

try {
  const { tool, input } = await json(process.stdin)
  console.log(JSON.stringify({ outline, operation, lint: lintFile }[tool](input)))
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
