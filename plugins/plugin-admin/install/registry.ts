import * as v from 'valibot'
import { readJson, Refusal } from 'svc/sdk'
import type { Fetch } from 'svc/sdk'
import { fetchFrom, orUnavailable } from './fetch.ts'
import { verifyIntegrity } from './integrity.ts'

/** The name of an npm package, with or without a scope. */
export const PackageName = v.pipe(
  v.string(),
  v.maxLength(214),
  v.regex(/^(?:@[a-z0-9][\w.-]*\/)?[a-z0-9][\w.-]*$/i, 'must be the name of an npm package, such as "svc-weather"'),
)
const Dependencies = v.optional(v.record(v.string(), v.string()), {})
/** The parts of a `package.json` that are used. */
export const PackageFile = v.looseObject({
  name: v.optional(v.string(), ''),
  version: v.optional(v.string(), ''),
  dependencies: Dependencies,
})
const Version = v.looseObject({
  ...PackageFile.entries,
  dist: v.looseObject({ tarball: v.string(), integrity: v.optional(v.string()) }),
  deprecated: v.optional(v.unknown()),
})
type Version = v.InferOutput<typeof Version>
const Packument = v.looseObject({
  'dist-tags': v.optional(v.record(v.string(), v.string()), {}),
  versions: v.record(v.string(), v.unknown()),
})
const Search = v.looseObject({
  objects: v.array(
    v.looseObject({
      package: v.looseObject({
        name: v.string(),
        version: v.string(),
        description: v.optional(v.string(), ''),
        publisher: v.optional(v.looseObject({ username: v.optional(v.string(), '') })),
      }),
    }),
  ),
})

export interface RegistrySettings {
  readonly registry_url: string
  readonly max_archive_bytes: number
  readonly max_metadata_bytes: number
}
export interface RegistryPackage {
  readonly name: string
  readonly version: string
  readonly integrity: string
  readonly tarball: string
  readonly dependencies: Readonly<Record<string, string>>
  /** What the registry says of a version that should not be used any more. */
  readonly deprecated?: string
}
export interface FoundPackage {
  readonly name: string
  readonly version: string
  readonly description: string
  readonly author: string
}
/** The abbreviated form: without the README of every version. */
const ACCEPT = 'application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8'
/** What plugins are found by. */
const KEYWORD = 'svc-plugin'
/** The largest page that registries answer with is 250. */
const MAX_RESULTS = 100
const MAX_DEPRECATION_CHARS = 500

/** Reads packages of an npm registry. Every archive is checked against the hash that the registry names for it. */
export class Registry {
  readonly #fetch: Fetch
  readonly #settings: RegistrySettings
  readonly #packuments = new Map<string, Promise<v.InferOutput<typeof Packument>>>()
  #metadataBytes = 0
  constructor(fetch: Fetch, settings: RegistrySettings) {
    this.#fetch = fetch
    this.#settings = settings
  }

  /** The newest version in a range or under a tag. Throws `not_found` and `invalid_request`. */
  async resolve(name: string, range = 'latest'): Promise<RegistryPackage> {
    const { maxSatisfying, validRange } = await import('semver')
    const packument = await this.#packument(name)
    const tagged = Object.hasOwn(packument['dist-tags'], range) ? packument['dist-tags'][range] : undefined
    if (tagged === undefined && validRange(range) === null)
      throw new Refusal('invalid_request', `"${range}" is neither a range of versions nor a tag of the package ${name}`)
    const found = tagged ?? maxSatisfying(Object.keys(packument.versions), range)
    if (found === null || !Object.hasOwn(packument.versions, found))
      throw new Refusal('not_found', `The registry has no version of ${name} in the range "${range}"`)
    return toPackage(name, found, packument.versions[found])
  }

  /** The archive of a package, with the hash the registry names. */
  async download({ name, version, integrity, tarball }: RegistryPackage): Promise<Uint8Array> {
    const response = await fetchFrom(this.#fetch, tarball, { maxBytes: this.#settings.max_archive_bytes })
    const bytes = await orUnavailable(response.bytes())
    verifyIntegrity(bytes, integrity, `The archive of ${name}@${version}`)
    return bytes
  }

  /** Packages with the keyword of plugins. */
  async search(): Promise<readonly FoundPackage[]> {
    const url = this.#address(`-/v1/search?text=keywords:${KEYWORD}&size=${MAX_RESULTS}`)
    const { objects } = parseAnswer(Search, await this.#metadata(url), 'the search')
    return objects.slice(0, MAX_RESULTS).map(({ package: { name, version, description, publisher } }) => ({
      name,
      version,
      description,
      author: publisher?.username ?? '',
    }))
  }

  #packument(name: string): Promise<v.InferOutput<typeof Packument>> {
    const known = this.#packuments.get(name) ?? this.#readPackument(name)
    this.#packuments.set(name, known)
    return known
  }
  async #readPackument(name: string): Promise<v.InferOutput<typeof Packument>> {
    if (!v.is(PackageName, name)) throw new Refusal('invalid_request', `"${name}" is not the name of an npm package`)
    const url = this.#address(name.replace('/', '%2f'))
    const found = await this.#metadata(url)
    if (found === undefined) throw new Refusal('not_found', `The registry has no package "${name}"`)
    return parseAnswer(Packument, found, name)
  }

  /** `undefined` for what is not there. What the registry says is counted: it is not in the size of any archive. */
  async #metadata(url: string): Promise<unknown> {
    const max = this.#settings.max_metadata_bytes
    const left = max - this.#metadataBytes
    const response = await fetchFrom(this.#fetch, url, { headers: { accept: ACCEPT }, accepts: [404] })
    if (response.status === 404) return undefined
    const parts: Uint8Array[] = []
    let bytes = 0
    const read = async (): Promise<void> => {
      for await (const part of response.chunks()) {
        bytes += part.length
        if (bytes > left) break
        parts.push(part)
      }
    }
    await orUnavailable(read())
    this.#metadataBytes += bytes
    if (bytes > left)
      throw new Refusal('payload_too_large', `The registry says more than max_metadata_bytes (${max}) about packages`)
    return parseJson(Buffer.concat(parts).toString(), url)
  }
  #address(path: string): string {
    return `${this.#settings.registry_url.replace(/\/+$/, '')}/${path}`
  }
}

function toPackage(name: string, version: string, found: unknown): RegistryPackage {
  const { dist, dependencies, deprecated } = parseAnswer(Version, found, `${name}@${version}`)
  if (dist.integrity === undefined)
    throw new Refusal(
      'invalid_request',
      `The registry names no sha512 hash of ${name}@${version}: it cannot be checked`,
    )
  const isDeprecated = typeof deprecated === 'string' && deprecated !== ''
  return {
    name,
    version,
    integrity: dist.integrity,
    tarball: dist.tarball,
    dependencies,
    ...(isDeprecated && { deprecated: deprecated.slice(0, MAX_DEPRECATION_CHARS) }),
  }
}

function parseJson(text: string, url: string): unknown {
  try {
    return readJson(text)
  } catch (cause) {
    throw new Refusal('service_unavailable', `${url} did not answer with JSON`, { cause })
  }
}
function parseAnswer<S extends v.GenericSchema>(schema: S, value: unknown, what: string): v.InferOutput<S> {
  const parsed = v.safeParse(schema, value)
  if (parsed.success) return parsed.output
  throw new Refusal('service_unavailable', `The registry's answer for ${what} cannot be read`)
}
