import { element } from '../../kit/kit.js'
import { resolve } from './schema.js'

/** The field of a parameter. */
export function fieldOf({ schema, in: place }, api) {
  const { enum: values, default: usual } = resolve(schema, api)
  if (values)
    return element(
      'select',
      {},
      ['', ...values].map((value) => element('option', { value: String(value) }, String(value))),
    )
  return element('input', {
    autocomplete: 'off',
    spellcheck: 'false',
    placeholder: usual ?? (place === 'path' && 'id'),
  })
}

/** The field of a body; `read` returns what is sent. A GET cannot have one. */
export function bodyField(requestBody) {
  const types = requestBody?.content ?? {}
  const json = types['application/json']
  if (json) {
    const field = element('textarea', { rows: '8', spellcheck: 'false' })
    field.value = JSON.stringify(json.example ?? {}, undefined, 2)
    return {
      label: 'Body (JSON)',
      field,
      read: () => ({ headers: { 'content-type': 'application/json' }, content: field.value }),
      command: () => ` \\\n  -H 'content-type: application/json' -d ${quote(field.value)}`,
    }
  }
  if (Object.keys(types).length === 0) return undefined
  const name = Object.keys(types['multipart/form-data']?.schema.properties ?? {})[0]
  const field = element('input', { type: 'file' })
  return {
    label: 'File',
    field,
    read: () => ({ content: toContent(field.files[0], name) }),
    command: () => (name ? ` \\\n  -F ${quote(`${name}=@file`)}` : ' \\\n  --data-binary @file'),
  }
}
function toContent(file, name) {
  if (!name || !file) return file
  const form = new FormData()
  form.append(name, file)
  return form
}

/** The address with what was filled in. */
export function urlOf(path, parameters) {
  const filled = parameters.filter(({ field }) => field.value !== '')
  const query = new URLSearchParams(
    filled.filter((one) => one.in === 'query').map(({ name, field }) => [name, field.value]),
  )
  const target = filled
    .filter((one) => one.in === 'path')
    .reduce((url, { name, field }) => url.replace(`{${name}}`, () => encodeURIComponent(field.value)), path)
  return query.size === 0 ? target : `${target}?${query}`
}
export function headersOf(parameters) {
  const headers = parameters.filter((one) => one.in === 'header' && one.field.value !== '')
  return Object.fromEntries(headers.map(({ name, field }) => [name, field.value]))
}

/** The command that sends the same. The key is not shown. */
export function curlOf({ method, url, headers, body }) {
  const verb = method === 'get' ? '' : ` -X ${method.toUpperCase()}`
  const lines = Object.entries(headers).map(([name, value]) => ` \\\n  -H ${quote(`${name}: ${value}`)}`)
  const key = ` \\\n  -H "authorization: Bearer $SVC_API_KEY"`
  return `curl${verb} ${quote(location.origin + url)}${key}${lines.join('')}${body?.command() ?? ''}`
}
const quote = (text) => `'${text.replaceAll("'", String.raw`'\''`)}'`
