import { follow, isObject, listOf, operationsOf, parametersOf, resolve } from './document.mjs'

/** Those of Swagger 2 stand at the top, since 3.0 in `components`. */
const isSwagger = (document) => document.swagger !== undefined
const securitySchemes = (document) =>
  (isSwagger(document) ? document.securityDefinitions : document.components?.securitySchemes) ?? {}

/** Findings as `{ severity, at, message }`. */
export function lint(document) {
  const found = []
  const say = (severity, at, message) => found.push({ severity, at, message })
  checkTop(document, say)
  checkPaths(document, say)
  const ids = new Map()
  for (const each of operationsOf(document)) checkOperation(document, each, ids, say)
  checkSecurity(document, document.security, 'security', say)
  const used = new Set()
  checkParts(document, used, say)
  checkUnused(document, used, say)
  const order = ['error', 'warning', 'hint']
  return found.toSorted((one, other) => order.indexOf(one.severity) - order.indexOf(other.severity))
}

function checkTop(document, say) {
  const version = String(document.openapi ?? document.swagger)
  if (!/^(?:2\.0|3\.[012](?:\.\d+)?)$/.test(version)) say('error', 'openapi', `there is no version ${version}`)
  for (const key of ['title', 'version'])
    if (typeof document.info?.[key] !== 'string')
      say('error', `info.${key}`, 'is missing, or no text: quote numbers in YAML')
  const mayLack = document.webhooks !== undefined || (document.components !== undefined && /^3\.[12]/.test(version))
  if (!isObject(document.paths) && !mayLack) say('error', 'paths', 'is missing')
  if (!isSwagger(document) && listOf(document.servers).length === 0)
    say('warning', 'servers', 'is missing: clients take the address of the document')
}

function checkPaths(document, say) {
  const shapes = new Map()
  for (const path of Object.keys(isObject(document.paths) ? document.paths : {})) {
    if (!path.startsWith('/') && !path.startsWith('x-')) say('error', path, 'a path begins with "/"')
    if (path.includes('?')) say('error', path, 'a query belongs to the parameters')
    if (path.length > 1 && path.endsWith('/')) say('hint', path, 'ends with "/": some servers take it for another path')
    const shape = path.replace(/\{[^}]*\}/g, '{}')
    if (shapes.has(shape)) say('error', path, `is the same path as ${shapes.get(shape)}`)
    else shapes.set(shape, path)
  }
}

function checkOperation(document, each, ids, say) {
  const { method, path, operation } = each
  const at = `${method} ${path}`
  const { operationId: id } = operation
  if (typeof id !== 'string') say('warning', at, 'has no operationId: generated clients invent names')
  else if (ids.has(id)) say('error', at, `operationId "${id}" is also at ${ids.get(id)}`)
  else ids.set(id, at)
  if (typeof operation.summary !== 'string' && typeof operation.description !== 'string')
    say('hint', at, 'has neither summary nor description')
  checkParameters(document, each, at, say)
  checkAnswers(document, operation, at, say)
  if ((method === 'GET' || method === 'HEAD') && operation.requestBody !== undefined)
    say('warning', at, 'has a body, which many clients and proxies drop')
  if (operation.security !== undefined) checkSecurity(document, operation.security, at, say)
  else if (document.security === undefined)
    say('warning', at, 'has no security, nor has the document: [] if it is public')
}

function checkParameters(document, each, at, say) {
  const declared = parametersOf(document, each)
  const inPath = [...each.path.matchAll(/\{([^}]+)\}/g)].map(([, name]) => name)
  const names = declared.filter((parameter) => parameter.in === 'path').map(({ name }) => name)
  for (const name of inPath.filter((one) => !names.includes(one)))
    say('error', at, `path parameter "${name}" is not declared`)
  for (const name of names.filter((one) => !inPath.includes(one)))
    say('error', at, `path parameter "${name}" is not in the path`)
  for (const parameter of declared) {
    const who = `parameter "${parameter.name}"`
    if (typeof parameter.name !== 'string' || typeof parameter.in !== 'string')
      say('error', at, 'a parameter needs name and in')
    else if (parameter.in === 'path' && parameter.required !== true)
      say('error', at, `${who} of the path needs required: true`)
    else if (!isSwagger(document) && parameter.schema === undefined && parameter.content === undefined)
      say('error', at, `${who} needs schema or content`)
  }
}

function checkAnswers(document, { responses }, at, say) {
  const codes = Object.keys(isObject(responses) ? responses : {})
  if (codes.length === 0) return say('error', at, 'has no responses')
  for (const code of codes.filter((one) => !/^(?:[1-5](?:\d\d|XX)|default|x-.*)$/.test(one)))
    say('error', at, `"${code}" is no status`)
  if (!String(document.openapi).startsWith('3.2'))
    for (const code of codes.filter((one) => !one.startsWith('x-'))) {
      const answer = resolve(document, responses[code])
      if (isObject(answer) && answer.description === undefined) say('error', at, `response ${code} has no description`)
    }
  if (!codes.some((code) => /^[123]|^default$/.test(code))) say('warning', at, 'has no answer of success')
  if (!codes.some((code) => /^[45]|^default$/.test(code))) say('warning', at, 'has no answer of an error')
}

function checkSecurity(document, security, at, say) {
  for (const each of listOf(security))
    for (const name of Object.keys(isObject(each) ? each : {}))
      if (!Object.hasOwn(securitySchemes(document), name)) say('error', at, `there is no security scheme "${name}"`)
}

/** Every object of the document once, with its place. */
function* walk(document) {
  const seen = new Set()
  const open = [{ value: document, at: '#', isLiteral: false }]
  while (open.length > 0) {
    const { value, at, isLiteral } = open.pop()
    if (typeof value !== 'object' || value === null || seen.has(value)) continue
    seen.add(value)
    if (isObject(value) && !isLiteral) yield { value, at }
    for (const [key, part] of Object.entries(value).toReversed())
      open.push({
        value: part,
        at: `${at}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`,
        isLiteral: isLiteral || holdsLiteral(at, key, part),
      })
  }
}

/** Whether a value of somebody's data stands there, which is no part of the description. */
function holdsLiteral(at, key, part) {
  if (/\/(?:properties|responses)$/.test(at)) return false
  return /^(?:example|default|enum|const)$/.test(key) || (key === 'examples' && Array.isArray(part))
}

function checkParts(document, used, say) {
  const isOld = /^3\.0|^2/.test(String(document.openapi ?? document.swagger))
  for (const { value, at } of walk(document)) {
    const { $ref: reference } = value
    if (typeof reference === 'string') {
      used.add(reference)
      if (!reference.startsWith('#')) say('hint', at, `${reference} is another document, which is not read`)
      else if (follow(document, reference) === undefined) say('error', at, `${reference} leads nowhere`)
    }
    if (value.type === 'array' && value.items === undefined && value.prefixItems === undefined)
      say(isOld ? 'error' : 'warning', at, 'is an array without items')
    if (!isOld && typeof value.nullable === 'boolean')
      say('error', at, 'nullable has no effect since 3.1: use type: [x, "null"]')
    if (isOld && Array.isArray(value.type)) say('error', at, 'type has more than one value, which begins with 3.1')
    checkRequired(value, at, say)
  }
}

function checkRequired({ required, properties, allOf }, at, say) {
  if (!isObject(properties) || allOf) return
  for (const name of listOf(required))
    if (!Object.hasOwn(properties, name)) say('warning', at, `requires "${name}", which is none of its properties`)
}

function checkUnused(document, used, say) {
  const parts = isSwagger(document) ? { definitions: document.definitions } : document.components
  const base = isSwagger(document) ? '#' : '#/components'
  for (const [kind, members] of Object.entries(isObject(parts) ? parts : {})) {
    if (kind === 'securitySchemes' || !isObject(members)) continue
    for (const name of Object.keys(members)) {
      const at = `${base}/${kind}/${name}`
      if (![...used].some((reference) => reference === at || reference.startsWith(`${at}/`)))
        say('hint', at, 'is not used')
    }
  }
}
