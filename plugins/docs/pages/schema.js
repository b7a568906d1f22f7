import { element } from '../../kit/kit.js'

/** The schema that a reference names, or the schema itself. */
export function resolve(schema, api) {
  const name = schema.$ref?.match(/^#\/components\/schemas\/(.+)$/)?.[1]
  return name === undefined ? schema : (api.components.schemas[name] ?? {})
}

/** The type in a few words. */
export function typeOf(given, api) {
  const schema = resolve(given, api)
  const suffix = schema.nullable ? ' or null' : ''
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ') + suffix
  const variants = schema.anyOf ?? schema.oneOf
  if (variants) return [...new Set(variants.map((one) => typeOf(one, api)))].join(' or ') + suffix
  if (schema.type === 'array') return `array of ${typeOf(schema.items ?? {}, api)}${suffix}`
  return (schema.type ?? (schema.properties || schema.allOf ? 'object' : 'any')) + suffix
}

/** What a value has to be beside its type. */
export function constraintsOf(schema) {
  const { format, minimum, maximum, minLength, maxLength, minItems, maxItems, pattern } = schema
  const range = (name, from, to) =>
    from !== undefined && to !== undefined
      ? `${name} ${from} to ${to}`
      : from !== undefined
        ? `${name} ${from} or more`
        : to !== undefined && `${name} ${to} or less`
  const parts = [
    format,
    range('value', minimum, maximum),
    range('length', minLength, maxLength),
    range('items', minItems, maxItems),
    pattern && `matches ${pattern}`,
    schema.default !== undefined && `${JSON.stringify(schema.default)} by default`,
  ]
  return parts.filter(Boolean).join(', ')
}

/** The fields of a schema; those of a field are drawn when it is opened, so a schema may contain itself. */
export function schemaView(given, api) {
  const schema = resolve(given, api)
  if (schema.type === 'array') {
    const below = schemaView(schema.items ?? {}, api)
    return below && element('div', {}, element('p', { className: 'hint' }, 'An array of:'), below)
  }
  const variants = (schema.anyOf ?? schema.oneOf)?.filter((one) => hasFields(one, api))
  if (variants?.length > 0)
    return variants.map((one, index) => [
      variants.length > 1 && element('p', { className: 'hint' }, index === 0 ? 'Either:' : 'Or:'),
      schemaView(one, api),
    ])
  const fields = Object.entries(fieldsOf(schema, api))
  if (fields.length === 0) return schema.description && element('p', {}, schema.description)
  const required = new Set([schema, ...(schema.allOf ?? [])].flatMap((one) => resolve(one, api).required ?? []))
  return element(
    'ul',
    { className: 'schema' },
    fields.map(([name, field]) => fieldView(name, field, { api, isRequired: required.has(name) })),
  )
}

function fieldView(name, given, { api, isRequired }) {
  const schema = resolve(given, api)
  const meaning = [schema.description, constraintsOf(schema)].filter(Boolean).join('. ')
  const head = [
    element('code', {}, name),
    element('span', { className: 'hint' }, ` ${typeOf(schema, api)}${isRequired ? ', required' : ''}`),
    meaning && element('p', { className: 'hint' }, meaning),
  ]
  if (!hasFields(schema, api)) return element('li', {}, head)
  const below = element('details', {}, element('summary', {}, 'Fields'))
  below.addEventListener('toggle', () => {
    if (below.children.length === 1) below.append(...[schemaView(schema, api)].flat(Infinity).filter(Boolean))
  })
  return element('li', {}, head, below)
}

function fieldsOf(schema, api) {
  const inherited = (schema.allOf ?? []).map((one) => fieldsOf(resolve(one, api), api))
  return Object.assign({}, ...inherited, schema.properties)
}

function hasFields(given, api) {
  const schema = resolve(given, api)
  if (schema.type === 'array') return hasFields(schema.items ?? {}, api)
  return Object.keys(schema.properties ?? {}).length > 0 || [schema.anyOf, schema.oneOf, schema.allOf].some(Boolean)
}
