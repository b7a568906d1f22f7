import { hash } from 'node:crypto'
import { readArchive } from 'svc/internal'
import type { ArchivedFile } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Settings } from '../config.ts'
import type { HubArchive } from '../hub/clawhub.ts'
import { convert } from '../hub/convert.ts'
import type { Hubs } from '../hub/open.ts'
import { checkFiles } from './bundle.ts'
import type { Bundle } from './bundle.ts'
import type { Warning } from './scan.ts'

/** `hub:[@owner/]slug[@version]` */
const HUB =
  /^hub:(?:@(?<owner>[\w.-]{1,100})\/)?(?<slug>[A-Za-z0-9][A-Za-z0-9._-]{0,199})(?:@(?<version>[\w.+-]{1,64}))?$/
/** `marketplace:owner/repository[/folder][#branch, tag or commit]` */
const MARKETPLACE =
  /^marketplace:(?<repository>[\w.-]{1,100}\/[\w.-]{1,100})(?:\/(?<folder>[^#]{1,300}))?(?:#(?<ref>[\w./-]{1,200}))?$/
/** What the hub adds to an archive. */
const ADDED = '_meta.json'

/** Reads a skill of a hub. Throws what the hub refuses, and `invalid_request` for a source that is none. */
export async function readHubBundle(source: string, hubs: Hubs, settings: Settings): Promise<Bundle> {
  const hub = HUB.exec(source)?.groups
  if (hub?.['slug'] !== undefined)
    return await ofHub(await hubs.clawhub.download(hub['slug'], hub['owner'], hub['version']), hubs, settings)
  const place = MARKETPLACE.exec(source)?.groups
  const repository = place?.['repository']
  if (repository === undefined || repository.split('/').some((part) => /^\.+$/.test(part)))
    throw new Refusal(
      'invalid_request',
      'source: must be hub:[@owner/]slug[@version] or marketplace:owner/repository[/folder][#branch, tag or commit]',
    )
  const archive = await hubs.marketplace.download(repository, place?.['ref'])
  const files = inFolder(await readArchive(archive, settings), place?.['folder'] ?? '')
  return { files: checkFiles(files), source, sha256: hash('sha256', archive), archive }
}

async function ofHub(found: HubArchive, hubs: Hubs, settings: Settings): Promise<Bundle> {
  const { content, hashes, owner, slug, suspicion, version } = found
  const isArchive = content instanceof Uint8Array
  const archive = isArchive ? content : await hubs.marketplace.download(content.repository, content.commit)
  const unpacked = await readArchive(archive, settings)
  const files = checkFiles(isArchive ? unpacked : inFolder(unpacked, content.folder)).filter(
    ({ name }) => name !== ADDED,
  )
  if (hashes.size > 0) checkHashes(slug, files, hashes)
  const { translations, warnings, from, files: converted } = await convert(files, { slug, version })
  const doubts: Warning[] = []
  if (suspicion !== undefined) doubts.push({ severity: 'warning', message: `the hub doubts it: ${suspicion}` })
  if (hashes.size === 0) doubts.push({ severity: 'warning', message: 'the hub names no hashes of its files' })
  return {
    files: converted,
    source: `hub:${owner === undefined ? '' : `@${owner}/`}${slug}${version === '' ? '' : `@${version}`}`,
    sha256: hash('sha256', archive),
    archive,
    conversion: { from, translations, warnings: [...doubts, ...warnings] },
  }
}

/** The files of one folder of a repository, named from there. */
function inFolder(files: readonly ArchivedFile[], folder: string): readonly ArchivedFile[] {
  const prefix = folder.replace(/^\.?\/+|\/+$/g, '')
  if (prefix === '' || prefix === '.') return files
  const found = files
    .filter(({ name }) => name.startsWith(`${prefix}/`))
    .map(({ name, bytes }) => ({ name: name.slice(prefix.length + 1), bytes }))
  if (found.length === 0) throw new Refusal('not_found', `The repository has no folder "${prefix}"`)
  return found
}

/** Throws `forbidden` unless these are the files that the hub says the version has. */
function checkHashes(slug: string, files: readonly ArchivedFile[], hashes: ReadonlyMap<string, string>): void {
  const wrong = files.find(({ name, bytes }) => hashes.get(name) !== hash('sha256', bytes))
  const missing = [...hashes.keys()].find((name) => !files.some((file) => file.name === name) && !isHidden(name))
  const named = wrong?.name ?? missing
  if (named === undefined) return
  throw new Refusal('forbidden', `The archive of "${slug}" is not what the hub says it is: "${named}" differs`, {
    details: { file: named },
  })
}
const isHidden = (name: string): boolean => /(?:^|\/)\./.test(name)
