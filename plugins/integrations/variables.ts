import { Refusal } from 'svc/sdk'
import type { Template, Variable } from './catalog/template.ts'

const MAX_VALUE_CHARS = 8_192

/** How an integration reaches its vendor: with the secrets that were entered, or with a login. */
export type Access = 'credentials' | 'login'
export interface Entered {
  readonly access: Access
  /** Values by the names of the variables, defaults included. */
  readonly values: ReadonlyMap<string, string>
}
interface Given {
  readonly token?: string | undefined
  readonly credentials?: Readonly<Record<string, string>> | undefined
}

/** Throws `invalid_request` for a variable that is missing, unknown or no usable text. Never names a value. */
export function readVariables(template: Template, given: Given): Entered {
  const values = new Map<string, string>()
  for (const [name, value] of Object.entries(withToken(template, given))) {
    checkVariable(template, name, value)
    if (value !== '') values.set(name, value)
  }
  const access = chooseAccess(template, values)
  for (const variable of requiredFor(template, access))
    if (!values.has(variable.name)) throw missing(template, variable)
  return { access, values }
}

function withToken(template: Template, { token, credentials = {} }: Given): Readonly<Record<string, string>> {
  if (token === undefined || token === '') return credentials
  const variable = template.required_env.find(({ is_secret, optional }) => is_secret && !optional)
  if (variable === undefined)
    throw new Refusal('invalid_request', `token: ${template.id} needs no secret; leave the token out`)
  return { ...credentials, [variable.name]: credentials[variable.name] ?? token }
}

function checkVariable({ id, required_env: variables }: Template, name: string, value: string): void {
  const names = variables.map((each) => each.name)
  if (!names.includes(name)) {
    const hint = names.length === 0 ? 'it needs none' : `its variables are ${names.join(', ')}`
    throw new Refusal('invalid_request', `credentials.${name}: ${id} has no such variable; ${hint}`)
  }
  if (value.length > MAX_VALUE_CHARS || !value.isWellFormed() || /\p{Cc}/u.test(value))
    throw new Refusal(
      'invalid_request',
      `credentials.${name}: expected one line of ${MAX_VALUE_CHARS} characters at most`,
    )
}

/** Whether the transport itself can be used with secrets: a hosted server without headers takes a login only. */
export const takesCredentials = ({ transport, oauth }: Template): boolean =>
  oauth === undefined || transport.type === 'stdio' || Object.keys(transport.headers).length > 0

function chooseAccess(template: Template, values: ReadonlyMap<string, string>): Access {
  const { oauth } = template
  if (oauth === undefined) return 'credentials'
  if (!takesCredentials(template)) return 'login'
  if (requiredFor(template, 'credentials').some(({ name }) => values.has(name))) return 'credentials'
  return oauth.client === undefined || values.has(oauth.client.id) ? 'login' : 'credentials'
}

function requiredFor(template: Template, access: Access): readonly Variable[] {
  const { oauth, required_env: variables } = template
  if (access === 'credentials' || !takesCredentials(template))
    return variables.filter((each) => !each.optional && each.default === undefined)
  return variables.filter(({ name }) => name === oauth?.client?.id)
}

/** The variables that must be entered. Where a login does as well, they are needed without it. */
export const requiredVariables = (template: Template): readonly Variable[] =>
  requiredFor(template, takesCredentials(template) ? 'credentials' : 'login')

function missing({ id }: Template, { name, label, help, get_url: url }: Variable): Refusal {
  const where = url === undefined ? '' : ` Get it at ${url}.`
  return new Refusal('invalid_request', `credentials.${name}: ${id} needs it: ${label}. ${help}${where}`.trim(), {
    details: { missing: name },
  })
}
