import * as v from 'valibot'
import { ConfigError, editToml, lineOfKey } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { CheckedDraft, Draft, Edits, Fault } from './draft-schema.ts'
import { checkManifestSize, readTable } from './manifest.ts'
import type { AgentService } from './service.ts'
import type { Opened } from './signing.ts'

/**
 * Says what making or changing an agent would say of a manifest, and makes and changes none. Throws, as they do, for a
 * signature that is not believed.
 */
export async function checkDraft(
  agents: AgentService,
  limit: number,
  { manifest_toml: text, signed_manifest: signed, agent_id: id, edits = {} }: Draft,
): Promise<CheckedDraft> {
  const { toml: given, ...signature } = await open(agents, text, signed, edits)
  checkManifestSize(given, limit)
  let toml = given
  let manifest: CheckedDraft['manifest'] = null
  try {
    manifest = readTable(given)
    toml = await applyEdits(given, edits)
    manifest = readTable(toml)
    const agent = await agents.check({ toml, ...signature }, id)
    const warnings = [...(await agents.warnings(agent)), ...agents.unsigned(agent)]
    return { valid: true, manifest_toml: toml, manifest, faults: [], warnings }
  } catch (error) {
    return { valid: false, manifest_toml: toml, manifest, faults: faultsOf(error, toml), warnings: [] }
  }
}

async function open(
  agents: AgentService,
  text: string | undefined,
  signed: Draft['signed_manifest'],
  edits: Edits,
): Promise<Opened> {
  if (signed === undefined) {
    if (text === undefined) throw new Refusal('invalid_request', 'manifest_toml: a manifest is needed')
    return { toml: text, signedBy: null, envelope: null }
  }
  if (Object.keys(edits).length > 0)
    throw new Refusal('invalid_request', 'edits: a signed manifest stays as it was signed')
  return agents.open({ manifest_toml: text, signed_manifest: signed })
}

async function applyEdits(toml: string, edits: Edits): Promise<string> {
  let edited = toml
  for (const [path, value] of Object.entries(edits)) {
    try {
      edited = await editToml(edited, path.split('.'), value ?? undefined)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      const message = 'the manifest is written in a way that cannot be changed safely; change it in the text itself'
      throw new Refusal('invalid_request', `${path}: ${message}`, { details: { issues: [{ path, message }] } })
    }
  }
  return edited
}

/** Throws what is not about the manifest. */
function faultsOf(error: unknown, toml: string): Fault[] {
  if (!(error instanceof Refusal) || (error.code !== 'invalid_request' && error.code !== 'conflict')) throw error
  const lineOf = (path: string): number | null => lineOfKey(toml, path) ?? null
  const { issues, line = null, column = null, name } = v.parse(Details, error.details)
  const { message } = error
  if (name !== undefined) return [{ message, line: lineOf('name'), column, key: 'name' }]
  if (issues.length === 0) return [{ message: message.replace(/^manifest_toml: /, ''), line, column, key: null }]
  return issues.map((issue) => ({ message: issue.message, line: lineOf(issue.path), column: null, key: issue.path }))
}
const Details = v.object({
  issues: v.optional(v.array(v.object({ path: v.string(), message: v.string() })), []),
  line: v.optional(v.number()),
  column: v.optional(v.number()),
  /** Of an agent that has it already. */
  name: v.optional(v.string()),
})
