import { hashOfFiles, verifyEd25519 } from 'svc/internal'
import type { ArchivedFile, Configuration, SharedFolders } from 'svc/internal'
import { isObject, Refusal } from 'svc/sdk'
import type { Fetch, Vault } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import type { Screening } from '../../screening/contract.ts'
import type { SkillCatalog } from '../catalog.ts'
import type { Settings } from '../config.ts'
import type { Hubs } from '../hub/open.ts'
import { decodeManifest, parseManifest } from '../manifest/read.ts'
import { SkillProblem } from '../manifest/skill.ts'
import type { SkillManifest } from '../manifest/skill.ts'
import type { InstallRequest } from '../schema.ts'
import { clearVariables } from '../variables.ts'
import { readBundle } from './bundle.ts'
import type { Bundle } from './bundle.ts'
import { permissionsOf } from './permissions.ts'
import { scan } from './scan.ts'
import type { Warning } from './scan.ts'
import type { InstallStore, SkillColumns } from './store.ts'

export interface InstallerDeps {
  readonly catalog: () => Promise<SkillCatalog>
  readonly store: InstallStore
  readonly folders: SharedFolders<SkillColumns>
  readonly audit: Audit
  readonly configuration: Configuration
  readonly screening: () => Screening | undefined
  readonly fetch: Fetch
  readonly hubs: () => Promise<Hubs>
  readonly settings: Settings
  readonly vault: Vault
}

export interface InstallOutcome {
  readonly status: 'installed' | 'updated' | 'checked'
  readonly manifest: SkillManifest
  readonly sha256: string
  readonly signedBy: string | null
  readonly permissions: readonly string[]
  readonly warnings: readonly Warning[]
  readonly conversion: Bundle['conversion']
}

/** Installs, updates and removes skills in `<home>/skills`, at every daemon on the database. */
export class Installer {
  readonly #deps: InstallerDeps
  constructor(deps: InstallerDeps) {
    this.#deps = deps
  }

  /**
   * Throws `forbidden` for a critical finding or a bad signature, `conflict` when there is one already or permissions
   * are not accepted, with them in `details`. Nothing is written then.
   */
  async install(request: InstallRequest): Promise<InstallOutcome> {
    const { catalog, screening } = this.#deps
    const bundle = await readBundle(request.source, this.#deps)
    checkHash(bundle, request)
    const signedBy = await this.#checkSignature(bundle, request)
    const manifest = await readFiles(bundle.files)
    const { conversion } = bundle
    const warnings = [...(await scan(manifest, bundle.files, screening())), ...(conversion?.warnings ?? [])]
    for (const message of manifest.warnings) warnings.push({ severity: 'warning', message })
    if ((await catalog()).isBundled(manifest.name))
      warnings.push({ severity: 'warning', message: `it replaces the skill "${manifest.name}" that comes with svc` })
    const critical = warnings.find(({ severity }) => severity === 'critical')
    if (critical)
      throw new Refusal('forbidden', `The skill "${manifest.name}" is refused: ${critical.message}`, {
        details: { warnings: [...warnings] },
      })
    const permissions = permissionsOf(manifest)
    if ((await catalog()).isBundled(manifest.name)) permissions.push(`replaces:${manifest.name}`)
    const outcome = { manifest, sha256: bundle.sha256, signedBy, permissions, warnings, conversion }
    return await this.#deps.folders.inTurn(manifest.name, async () => {
      const known = await this.#deps.store.find(manifest.name)
      const isThere = (await catalog()).find(manifest.name)?.origin === 'local'
      if (request.dry_run) return { ...outcome, status: 'checked' }
      if (isThere && !request.update)
        throw new Refusal(
          'conflict',
          `The skill "${manifest.name}" is installed already: set update (--update) to replace it`,
          {
            details: { status: 'already_installed' },
          },
        )
      checkAccepted(request, manifest.name, permissions, known?.state === 'installed' ? known.permissions : [])
      // What was entered for a skill of one place is not for that of another one.
      if (known === undefined || placeOf(known.source) !== placeOf(bundle.source))
        await clearVariables(this.#deps.vault, manifest.name)
      await this.#put(bundle, { manifest, permissions, signedBy }, isThere ? 'updated' : 'installed')
      await (await catalog()).refresh()
      return { ...outcome, status: isThere ? 'updated' : 'installed' }
    })
  }

  /** Throws `not_found`, and `forbidden` for one that comes with svc. */
  async remove(name: string): Promise<void> {
    const catalog = await this.#deps.catalog()
    await this.#deps.folders.inTurn(name, async () => {
      if (catalog.require(name).origin === 'bundled')
        throw new Refusal(
          'forbidden',
          `The skill "${name}" comes with svc and cannot be uninstalled; plugins.skills.disabled takes it from agents`,
        )
      const { audit, folders, store } = this.#deps
      const known = await store.find(name)
      const entry = audit.entry({ event: 'skill_changed', details: `skill ${name} uninstalled` })
      await folders.remove(name, known && { ...known, permissions: [] }, [entry])
      await clearVariables(this.#deps.vault, name)
      await catalog.refresh()
    })
  }

  /** Puts new files in place and records who has them from where. Throws `conflict` when there is such a skill. */
  async create(name: string, files: readonly ArchivedFile[]): Promise<void> {
    const catalog = await this.#deps.catalog()
    await this.#deps.folders.inTurn(name, async () => {
      if (catalog.find(name)?.origin === 'local') throw new Refusal('conflict', `There is a skill "${name}" already`)
      const manifest = await readFiles(files)
      const bundle: Bundle = { files, source: 'created', sha256: hashOfFiles(files), archive: undefined }
      await this.#put(bundle, { manifest, permissions: permissionsOf(manifest), signedBy: null }, 'created')
      await catalog.refresh()
    })
  }

  /** Makes the folders what the database says: after a crash, and after a change by another daemon. */
  async reconcile(): Promise<void> {
    await this.#deps.folders.reconcile()
    await (await this.#deps.catalog()).refresh()
  }

  async #put(
    bundle: Bundle,
    about: {
      readonly manifest: SkillManifest
      readonly permissions: readonly string[]
      readonly signedBy: string | null
    },
    what: string,
  ): Promise<void> {
    const { audit, folders } = this.#deps
    const { name, version } = about.manifest
    const { files, sha256, source } = bundle
    const entry = audit.entry({
      event: 'skill_changed',
      details:
        `skill ${name} ${version} ${what} from ${source}, sha256 ${sha256}, ` +
        `permissions ${about.permissions.join(' ') || 'none'}`,
    })
    const row = { version, source, sha256, signed_by: about.signedBy, permissions: [...about.permissions] }
    await folders.put(name, row, files, [entry])
  }

  /** Ed25519 over the archive, by one of `manifest_signing.trusted_signers`. */
  async #checkSignature({ archive }: Bundle, { signature }: InstallRequest): Promise<string | null> {
    const section = this.#deps.configuration.read()['manifest_signing']
    const { policy, trusted_signers: keys } = isObject(section) ? section : {}
    if (signature === undefined) {
      if (policy === 'require')
        throw new Refusal('forbidden', 'manifest_signing.policy asks for a signature: send it as signature')
      return null
    }
    if (!archive) throw new Refusal('invalid_request', 'signature: only an archive can have one')
    const trusted = Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : []
    const signer = await verifyEd25519(archive, signature, trusted)
    if (signer !== undefined) return signer
    throw new Refusal(
      'forbidden',
      'The signature is by none of manifest_signing.trusted_signers, or the archive was changed after it was signed',
    )
  }
}

/** Where a skill comes from, whatever its version: of a hub or an address, or files of this machine. */
function placeOf(source: string): string {
  const [, ofHub] = /^(hub:(?:@[^/]+\/)?[^@]+)/.exec(source) ?? []
  if (ofHub !== undefined) return ofHub
  return /^(?:marketplace|https):/.test(source) ? source.replace(/#.*$/, '') : 'files'
}

/** Throws `invalid_request` for another hash than the request names. */
function checkHash({ sha256 }: Bundle, request: InstallRequest): void {
  if (!request.verify || request.sha256 === undefined || request.sha256.toLowerCase() === sha256) return
  throw new Refusal('invalid_request', `sha256: it is ${sha256}, not ${request.sha256}`, {
    details: { expected: request.sha256, actual: sha256 },
  })
}

function checkAccepted(
  { accept, accept_permissions: all }: InstallRequest,
  name: string,
  permissions: readonly string[],
  before: readonly string[],
): void {
  if (all) return
  const missing = permissions.filter((each) => !accept.includes(each) && !before.includes(each))
  if (missing.length === 0) return
  throw new Refusal(
    'conflict',
    `The skill "${name}" asks for ${missing.join(', ')}: send them in accept to permit that`,
    {
      details: { permissions: [...permissions], missing },
    },
  )
}

async function readFiles(files: readonly ArchivedFile[]): Promise<SkillManifest> {
  const textOf = (name: string): string | undefined => {
    const file = files.find((each) => each.name === name)
    return file && decodeManifest(name, file.bytes)
  }
  try {
    const manifest = await parseManifest(textOf('SKILL.md'), textOf('skill.toml'))
    if (manifest.entry !== '' && !files.some(({ name }) => name === manifest.entry))
      throw new SkillProblem(
        { file: 'skill.toml', key: 'runtime.entry' },
        `names "${manifest.entry}", which is not there`,
      )
    return manifest
  } catch (error) {
    if (!(error instanceof SkillProblem)) throw error
    const { file, line = null, key = null } = error
    throw new Refusal('invalid_request', error.message, { cause: error, details: { file, line, key } })
  }
}
