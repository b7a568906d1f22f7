import { lstat } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { matchesWildcard } from 'svc/internal'
import type { SharedFolders, UnknownKey } from 'svc/internal'
import { commandLine, Refusal } from 'svc/sdk'
import type { ToolDescription } from 'svc/sdk'
import type * as v from 'valibot'
import type { Audit } from '../../audit/contract.ts'
import type { Wakeups } from '../../schedules/contract.ts'
import type { ScanFinding, Skills } from '../../skills/contract.ts'
import { parseHand, readFolder } from '../catalog.ts'
import type { Hand, HandCatalog } from '../catalog.ts'
import type { Settings } from '../config.ts'
import { DEFINITION_FILE, DefinitionProblem, ignoredKeys, problemIn, SKILL_FILE } from '../definition.ts'
import type { Definition } from '../definition.ts'
import type { HandColumns, InstalledStore } from './store.ts'
import type { InstallHand } from '../schema.ts'
import { wakeupOf } from '../settings.ts'

const hinted = ({ path, nearest }: UnknownKey): string =>
  nearest === undefined ? path : `${path} (did you mean "${nearest}"?)`

export interface InstallerDeps {
  readonly catalog: HandCatalog
  readonly folders: SharedFolders<HandColumns>
  readonly store: InstalledStore
  readonly audit: Pick<Audit, 'entry'>
  readonly settings: Settings
  /** Looks at what is installed. */
  readonly skills: () => Skills | undefined
  /** What agents can be given. */
  readonly tools: () => readonly Pick<ToolDescription, 'name' | 'risk' | 'effect'>[]
  /** Throws what is wrong with a time. */
  readonly checkWakeup: Wakeups['check']
  readonly countInstances: (handId: string) => Promise<number>
  /** `<home>/hands`. */
  readonly folder: string
}
type Body = v.InferOutput<typeof InstallHand>
type Found = Pick<Hand, 'toml' | 'definition' | 'skill'>

/** Installs and removes hands in `<home>/hands`, at every daemon on the database. */
export class HandInstaller {
  readonly #deps: InstallerDeps
  constructor(deps: InstallerDeps) {
    this.#deps = deps
  }

  /**
   * Throws `invalid_request` with file, line and key for one that cannot be used, `forbidden` for a critical finding,
   * `conflict` when there is one already. Nothing is written then.
   */
  async install(body: Body) {
    const { audit, catalog, folder, folders } = this.#deps
    const { toml, definition, skill } = await this.#read(body)
    const { id, name, description, category } = definition
    const files = [
      { name: DEFINITION_FILE, bytes: Buffer.from(toml) },
      ...(skill === '' ? [] : [{ name: SKILL_FILE, bytes: Buffer.from(skill) }]),
    ]
    const warnings = await this.#scan(definition, files)
    const ignored = ignoredKeys(toml)
    if (ignored.length > 0)
      warnings.push({ severity: 'warning', message: `keys without effect: ${ignored.map(hinted).join(', ')}` })
    if (body.slug === undefined && (await catalog.bundled(id)) !== undefined)
      warnings.push({ severity: 'warning', message: `it replaces the hand "${id}" that comes with svc` })
    const path = join(folder, id)
    return await folders.inTurn(id, async () => {
      const isThere = await exists(path)
      if (isThere && !body.update)
        throw new Refusal('conflict', `There is a hand "${id}" in ${folder} already; send update: true to replace it`)
      const details = `hand "${id}" was ${isThere ? 'replaced' : 'installed'}`
      await folders.put(id, { source: sourceOf(body) }, files, [audit.entry({ event: 'hand_changed', details })])
      return { id, name, description, category, path, warnings: warnings.map((warning) => ({ ...warning })) }
    })
  }

  /** Throws `not_found`, `forbidden` for one that comes with svc, `conflict` while it has an instance. */
  async remove(id: string): Promise<void> {
    const { audit, catalog, countInstances, folder, folders, store } = this.#deps
    await folders.inTurn(id, async () => {
      if (!(await exists(join(folder, id)))) {
        await catalog.require(id)
        throw new Refusal('forbidden', `The hand "${id}" comes with svc and cannot be removed`)
      }
      const instances = await countInstances(id)
      if (instances > 0)
        throw new Refusal(
          'conflict',
          `The hand "${id}" has ${instances === 1 ? 'an instance' : `${instances} instances`}: deactivate first, with ${commandLine('hand stop <instance>')}`,
        )
      const entry = audit.entry({ event: 'hand_changed', details: `hand "${id}" was removed` })
      await folders.remove(id, await store.find(id), [entry])
    })
  }

  async #read(body: Body): Promise<Found> {
    const { catalog, settings } = this.#deps
    const given = (['toml_content', 'source', 'slug'] as const).filter((key) => body[key] !== undefined)
    if (given.length !== 1)
      throw new Refusal('invalid_request', 'body: exactly one of toml_content, source and slug is needed')
    if (body.skill_content !== undefined && body.toml_content === undefined)
      throw new Refusal('invalid_request', 'skill_content: goes with toml_content only')
    const kind = body.toml_content !== undefined ? 'toml' : body.source !== undefined ? 'folder' : 'bundled'
    if (!settings.sources.includes(kind))
      throw new Refusal('forbidden', `plugins.hands.sources does not permit to install from: ${kind}`)
    try {
      const found =
        body.toml_content !== undefined
          ? parseHand(undefined, body.toml_content, body.skill_content ?? '')
          : body.source === undefined
            ? await bundled(catalog, body.slug ?? '')
            : await folder(body.source)
      await this.#checkTimes(found)
      return found
    } catch (error) {
      if (!(error instanceof DefinitionProblem)) throw error
      throw new Refusal('invalid_request', error.message, {
        details: { line: error.line ?? null, key: error.key ?? null },
        cause: error,
      })
    }
  }

  /** Each time that it may be woken at. Throws `DefinitionProblem`. */
  async #checkTimes({ toml, definition }: Found): Promise<void> {
    const { settings: all, schedule } = definition
    const at = all.findIndex(({ key }) => key === schedule.setting)
    const values = all[at]?.options.map(({ value }) => value) ?? [undefined]
    for (const value of values) {
      const chosen = schedule.setting === undefined || value === undefined ? {} : { [schedule.setting]: value }
      try {
        await this.#deps.checkWakeup(wakeupOf(definition, chosen, this.#deps.settings.interval_secs))
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        const [, field = 'cron', why = error.message] = /^(cron|tz): ([^]*)$/.exec(error.message) ?? []
        const isOption = value !== undefined && field === 'cron'
        throw problemIn(toml, isOption ? `settings.${at}.options` : `schedule.${field}`, why)
      }
    }
  }

  /** By the rules for skills: a prompt that was made elsewhere says what an agent does. */
  async #scan(
    definition: Definition,
    files: readonly { readonly name: string; readonly bytes: Uint8Array }[],
  ): Promise<ScanFinding[]> {
    const skills = this.#deps.skills()
    if (!skills)
      throw new Refusal('service_unavailable', 'The plugin "skills", which looks at what is installed, is not loaded')
    const { network, shell } = definition.capabilities
    const wide = definition.tools.filter((name) => name.includes('*'))
    const granted = this.#deps.tools().filter(({ name }) => wide.some((pattern) => matchesWildcard(pattern, name)))
    const found = await skills.scan({
      files,
      manifest: definition,
      tools: [...definition.tools, ...granted.map(({ name }) => name)],
      permissions: network.map((host) => `network:${host}`),
    })
    const critical = found.find(({ severity }) => severity === 'critical')
    if (critical)
      throw new Refusal('forbidden', `The hand "${definition.id}" is refused: ${critical.message}`, {
        details: { warnings: found.map((each) => ({ ...each })) },
      })
    const programs = { severity: 'warning' as const, message: `its agent may run: ${shell.join(', ')}` }
    const addresses = [definition, ...definition.helpers].map(({ agent }) => agent.base_url)
    const elsewhere = [...new Set(addresses)].flatMap((address) =>
      address === undefined ? [] : [{ severity: 'warning' as const, message: `its conversations go to ${address}` }],
    )
    return [
      ...found,
      ...(wide.length === 0 ? [] : [describeWide(wide, granted)]),
      ...(shell.length === 0 ? [] : [programs]),
      ...elsewhere,
    ]
  }
}

/** What patterns of tools grant that nobody named. */
function describeWide(patterns: readonly string[], granted: ReturnType<InstallerDeps['tools']>): ScanFinding {
  const grave = granted.flatMap(({ name, risk, effect }) => (risk === 'execute' || effect === 'lasting' ? [name] : []))
  const which = patterns.includes('*') ? 'every tool there is and will be' : `every tool named ${patterns.join(', ')}`
  const among =
    grave.length === 0 ? '' : `; of the ${granted.length} there are now, these do the most: ${grave.join(', ')}`
  return { severity: 'warning', message: `its agent may call ${which}${among}` }
}

const sourceOf = ({ source, slug }: Body): string => source ?? (slug === undefined ? 'toml' : `svc:${slug}`)

async function bundled(catalog: HandCatalog, slug: string): Promise<Found> {
  const found = await catalog.bundled(slug)
  if (found === undefined) throw new Refusal('not_found', `No hand "${slug}" comes with svc`)
  if (found instanceof DefinitionProblem) throw found
  return found
}
async function folder(source: string): Promise<Found> {
  if (!isAbsolute(source)) throw new Refusal('invalid_request', 'source: must be an absolute path of a folder')
  const { content } = await readFolder(undefined, source)
  if (content instanceof DefinitionProblem) throw content
  return content
}
async function exists(path: string): Promise<boolean> {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false
    throw error
  }
}
