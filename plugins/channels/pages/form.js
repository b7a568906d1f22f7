import { call, element, openDialog } from '../../kit/kit.js'
import { makeField } from './form-field.js'

const ID_FIELD = {
  key: 'account_id',
  label: 'Name of the account',
  type: 'text',
  required: true,
  description: 'Lower-case letters, digits, - and _, such as support.',
}

/**
 * Opens the form of an account: that of `id`, a further one, or the first of the channel. Only what was changed is
 * sent; a secret that is left empty stays as it is.
 */
export async function openForm({ view, id, isFurther = false, finish }) {
  const account = view.account_list.find(({ account_id: one }) => one === id)
  const path = `/api/channels/${encodeURIComponent(view.name)}`
  const [read, agents] = await Promise.all([
    id === undefined ? view : call('GET', `${path}?account_id=${encodeURIComponent(id)}`).catch(() => view),
    call('GET', '/api/agents').catch(() => [] /* a name can be typed all the same */),
  ])
  const config = account?.config ?? {}
  const specs = account?.source === 'file' ? read.fields.filter(({ type }) => type === 'secret') : read.fields
  const fields = [...(isFurther ? [ID_FIELD] : []), ...specs].map((spec) =>
    makeField({ ...spec, has_value: account !== undefined && spec.has_value }, config[spec.key]),
  )
  const target = account === undefined ? view.display_name : `${view.display_name}${id === 'default' ? '' : ` (${id})`}`
  openDialog({
    title: account === undefined ? `Set up ${target}` : `Configure ${target}`,
    content: [introduction(account), layOut(fields), agentNames(agents)],
    confirm: 'Save',
    busy: 'Saving …',
    async submit() {
      if (!checkRequired(fields)) return false
      const changes = readChanges(fields)
      if (account !== undefined && Object.keys(changes).length === 0) return true
      const { activated } = await call('POST', `${path}/configure`, toBody(changes, id))
      await finish(activated ? `${target} is saved, and connects.` : `${target} is saved. It is disabled.`)
      return true
    },
    onError: (error) => showProblems(fields, error),
  })
}

function introduction(account) {
  if (account?.source !== 'file') return undefined
  return element(
    'p',
    { className: 'hint' },
    'This account is in config.toml and is changed there. Only secrets that the file does not have can be stored here.',
  )
}

function layOut(fields) {
  const main = fields.filter(({ isAdvanced }) => !isAdvanced)
  const further = fields.filter(({ isAdvanced }) => isAdvanced)
  return [
    ...main.map(({ place }) => place),
    further.length > 0 &&
      element(
        'details',
        { className: 'further' },
        element('summary', {}, `More settings (${further.length})`),
        further.map(({ place }) => place),
      ),
  ]
}

function agentNames(agents) {
  return element(
    'datalist',
    { id: 'agents' },
    agents.map(({ name }) => element('option', { value: name })),
  )
}

function readChanges(fields) {
  const changes = fields.map(({ key, read }) => [key, read()]).filter(([, value]) => value !== undefined)
  return Object.fromEntries(changes)
}

function toBody({ account_id: named, ...changes }, id) {
  const account = id ?? named
  // A channel may need no field at all.
  const fields = Object.keys(changes).length === 0 ? { allowed_users: [] } : changes
  return { ...(account !== undefined && { account_id: account }), fields }
}

function checkRequired(fields) {
  for (const field of fields) field.complain(field.isMissing() ? 'This field is required.' : undefined)
  const missing = fields.find((field) => field.isMissing())
  missing?.focus()
  return missing === undefined
}

/** Puts what the daemon says of a field beside it. False when it speaks of something else. */
function showProblems(fields, { message, issues }) {
  const [, key, text] = /^(\w+)(?:\.\w+)*: (.*)$/s.exec(message) ?? []
  const problems = issues.length > 0 ? issues : [{ path: key ?? '', message: text }]
  const found = problems.flatMap((problem) => {
    const field = fields.find((one) => one.key === problem.path.split('.')[0])
    field?.complain(problem.message)
    return field ?? []
  })
  found[0]?.focus()
  return found.length === problems.length
}
