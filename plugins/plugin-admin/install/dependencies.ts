import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import type { ArchiveLimits } from 'svc/internal'
import { Refusal, readJson } from 'svc/sdk'
import { unpack } from './archive.ts'
import { PackageFile, PackageName } from './registry.ts'
import type { Registry, RegistryPackage } from './registry.ts'

/** Packages that the daemon gives to plugins itself. */
const GIVEN: ReadonlySet<string> = new Set(['svc', 'valibot'])

export interface DependencyLimits extends ArchiveLimits {
  readonly max_dependencies: number
  readonly max_total_bytes: number
}
interface Placed {
  /** Its folder below the plugin, such as `node_modules/a/node_modules/b`. */
  readonly path: string
  readonly found: RegistryPackage
}

/** The `package.json` of a folder; with empty fields when there is none. Throws `invalid_request` for a broken one. */
export async function readPackageFile(folder: string): Promise<v.InferOutput<typeof PackageFile>> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '{}'
    throw error
  })
  try {
    return v.parse(PackageFile, readJson(text))
  } catch (cause) {
    throw new Refusal('invalid_request', 'package.json of the plugin cannot be read', { cause })
  }
}

/**
 * Puts the dependencies of a plugin into its own `node_modules`, each checked against the hash of the registry. Nothing
 * of them is run: a package that needs its install script does not work. `ownBytes` is the size of the plugin without
 * them. Returns their names with versions.
 */
export async function installDependencies(
  folder: string,
  registry: Registry,
  limits: DependencyLimits,
  ownBytes: number,
): Promise<readonly string[]> {
  const claim = byteBudget(limits.max_total_bytes)
  claim(ownBytes)
  const { dependencies } = await readPackageFile(folder)
  const placed = await placeAll(dependencies, registry, limits.max_dependencies)
  for (const { path, found } of placed) {
    const target = join(folder, path)
    await mkdir(target, { recursive: true, mode: 0o700 })
    await unpack(await registry.download(found), target, limits, claim)
  }
  return placed.map(({ found: { name, version } }) => `${name}@${version}`)
}

function byteBudget(max: number): (bytes: number) => void {
  let total = 0
  return (bytes) => {
    total += bytes
    if (total <= max) return
    throw new Refusal(
      'payload_too_large',
      `The plugin and its dependencies unpack to more than max_total_bytes (${max})`,
    )
  }
}

/** Each package beside the plugin, or below the one that needs it when another version is there already. */
async function placeAll(
  wanted: Readonly<Record<string, string>>,
  registry: Registry,
  max: number,
): Promise<readonly Placed[]> {
  const { satisfies } = await import('semver')
  const placed = new Map<string, Placed>()
  const queue = Object.entries(wanted).map(([name, range]) => ({ name, range, parent: '' }))
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
    const { name, range, parent } = next
    if (GIVEN.has(name)) continue
    if (!v.is(PackageName, name)) throw new Refusal('invalid_request', `The dependency "${name}" is no npm package`)
    if (/[:/]/.test(range))
      throw new Refusal(
        'invalid_request',
        `The dependency ${name} is "${range}": only versions of the registry can be had`,
      )
    if (visible(placed, parent, name).some(({ found }) => satisfies(found.version, range))) continue
    const found = await registry.resolve(name, range === '' ? '*' : range)
    const top = `node_modules/${name}`
    const path = placed.has(top) ? `${parent === '' ? '' : `${parent}/`}${top}` : top
    if (placed.has(path)) throw new Refusal('invalid_request', `Two versions of ${name} are needed in one place`)
    placed.set(path, { path, found })
    if (placed.size > max)
      throw new Refusal('payload_too_large', `The plugin needs more packages than max_dependencies (${max})`)
    for (const [inner, innerRange] of Object.entries(found.dependencies))
      queue.push({ name: inner, range: innerRange, parent: path })
  }
  return [...placed.values()]
}

/** The package that code in `parent` would import under this name: the one in the closest folder. */
function visible(placed: ReadonlyMap<string, Placed>, parent: string, name: string): readonly Placed[] {
  for (let at = parent; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    const found = placed.get(`${at === '' ? '' : `${at}/`}node_modules/${name}`)
    if (found) return [found]
    if (at === '') return []
  }
}
