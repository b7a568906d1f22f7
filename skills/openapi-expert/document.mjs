import { readFileSync } from 'node:fs'
import { load } from 'js-yaml'

export const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)
export const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace', 'query']

/** Throws an error that names line and cause of what is no OpenAPI document. */
export function readDocument(path) {
  const bytes = readFileSync(path)
  let text
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw new Error('the file is no UTF-8 text', { cause })
  }
  const document = parse(text)
  if (!isObject(document)) throw new Error('the file holds no object: it is no OpenAPI document')
  if (typeof document.openapi !== 'string' && document.swagger === undefined)
    throw new Error('the file has neither "openapi" nor "swagger" at its top: it is no OpenAPI document')
  return document
}

/** JSON is YAML too, but its own parser says better what is wrong. */
function parse(text) {
  try {
    return text.trimStart().startsWith('{') ? JSON.parse(text) : load(text)
  } catch (cause) {
    const place = cause.mark ? ` at line ${cause.mark.line + 1}` : ''
    throw new Error(`the file cannot be read${place}: ${(cause.reason ?? cause.message).split('\n', 1)[0]}`, { cause })
  }
}

/** What a reference of the same document leads to; `undefined` when it leads nowhere or elsewhere. */
export function follow(document, reference) {
  if (reference === '#') return document
  if (!reference.startsWith('#/')) return undefined
  return reference
    .slice(2)
    .split('/')
    .map((part) => decodePart(part).replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce(
      (at, key) => (typeof at === 'object' && at !== null && Object.hasOwn(at, key) ? at[key] : undefined),
      document,
    )
}
function decodePart(part) {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
/** What an object says after its references. */
export function resolve(document, value) {
  let at = value
  for (let hops = 0; isObject(at) && typeof at.$ref === 'string' && hops < 50; hops++) at = follow(document, at.$ref)
  return at
}

/** `{ method, path, item, operation }` in the order of the document. */
export function operationsOf(document) {
  return Object.entries(isObject(document.paths) ? document.paths : {}).flatMap(([path, value]) => {
    const item = resolve(document, value)
    if (!isObject(item)) return []
    const more = isObject(item.additionalOperations) ? item.additionalOperations : {}
    return [
      ...methods.filter((method) => isObject(item[method])).map((method) => [method.toUpperCase(), item[method]]),
      ...Object.entries(more).filter(([, operation]) => isObject(operation)),
    ].map(([method, operation]) => ({ method, path, item, operation }))
  })
}
export const listOf = (value) => (Array.isArray(value) ? value : [])
/** Those of the path and of the operation, which replaces one of the same name and place. */
export function parametersOf(document, { item, operation }) {
  const found = new Map()
  for (const each of [...listOf(item.parameters), ...listOf(operation.parameters)]) {
    const parameter = resolve(document, each)
    if (isObject(parameter)) found.set(`${parameter.in} ${parameter.name}`, parameter)
  }
  return [...found.values()]
}
