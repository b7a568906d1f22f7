import * as v from 'valibot'
import { toIso } from 'svc/internal'
import { readFailedJson, Refusal } from 'svc/sdk'
import type { HubClient } from './client.ts'
import { hubFailed } from './errors.ts'
import { Detail, Handoff, Page, Search, SLUG, VersionFiles } from './wire.ts'
import type { ListedSkill } from './wire.ts'

/** Pages that one question walks through, because the hub knows cursors only. */
const MAX_PAGES = 20
const code = ['SKILL.md', 'package.json', 'skill.toml']

export interface BrowseRequest {
  readonly sort: string
  readonly limit: string
  readonly cursor: string | undefined
  readonly page: number
  readonly category: string | undefined
}
export interface HubArchive {
  readonly slug: string
  readonly version: string
  readonly owner: string | undefined
  /** A .zip, or where the files lie instead. */
  readonly content: Uint8Array | { readonly repository: string; readonly commit: string; readonly folder: string }
  /** SHA-256 by name; empty when the hub does not say them. */
  readonly hashes: ReadonlyMap<string, string>
  readonly suspicion: string | undefined
}

/** ClawHub and hubs that speak as it does. */
export class ClawHub {
  readonly #client: HubClient
  readonly #maxBytes: number
  constructor(client: HubClient, maxBytes: number) {
    this.#client = client
    this.#maxBytes = maxBytes
  }

  async search(q: string, limit: string) {
    if (q.trim() === '') return { items: [], next_cursor: null }
    const { results } = await this.#client.json('/api/v1/search', { q, limit }, Search)
    const items = results.flatMap(({ slug, displayName, summary, version, score, updatedAt, ownerHandle }) =>
      slug !== undefined && SLUG.test(slug)
        ? {
            slug,
            name: displayName || slug,
            description: summary ?? '',
            version: version ?? '',
            owner: ownerHandle ?? '',
            score,
            updated_at: timeOf(updatedAt),
          }
        : [],
    )
    return { items, next_cursor: null }
  }

  /** `page` counts from 1; its items are those of the category when one is given. */
  async browse({ sort, limit, category, page, ...from }: BrowseRequest) {
    let { cursor } = from
    let found = await this.#client.json('/api/v1/skills', { sort, limit, cursor }, Page)
    for (let at = 1; at < Math.min(page, MAX_PAGES); at++) {
      cursor = found.nextCursor ?? undefined
      if (cursor === undefined) return { items: [], categories: [], page, next_cursor: null }
      found = await this.#client.json('/api/v1/skills', { sort, limit, cursor }, Page)
    }
    const wanted = category?.toLowerCase()
    const items = found.items.filter(
      ({ topics }) => wanted === undefined || topics.some((topic) => topic.toLowerCase() === wanted),
    )
    return {
      items: items.map(toItem),
      categories: [...new Set(found.items.flatMap(({ topics }) => topics))].toSorted(),
      page,
      next_cursor: found.nextCursor ?? null,
    }
  }

  async detail(slug: string, owner: string | undefined) {
    const { skill, latestVersion, owner: by } = await this.#find(slug, owner)
    return {
      ...toItem({ ...skill, latestVersion }),
      author: by?.handle ?? '',
      author_name: by?.displayName ?? '',
      author_image: by?.image ?? '',
      tags: skill.topics,
      created_at: timeOf(skill.createdAt),
    }
  }

  /** The first of the files that say what a skill is. */
  async code(slug: string, ownerHandle: string | undefined) {
    for (const filename of code)
      try {
        const query = { path: filename, ownerHandle }
        return { slug, filename, code: await this.#client.text(`${pathOf(slug)}/file`, query) }
      } catch (error) {
        if (!(error instanceof Refusal && error.code === 'not_found')) throw error
      }
    throw new Refusal('not_found', `The hub has no "${slug}", or shows none of its files`)
  }

  /** Throws `forbidden` for what the hub took for malware. */
  async download(slug: string, ownerHandle: string | undefined, wanted: string | undefined): Promise<HubArchive> {
    const { skill, latestVersion, moderation, owner } = await this.#find(slug, ownerHandle)
    if (skill.slug !== slug)
      throw new Refusal(hubFailed, `The hub answered with "${skill.slug}" where "${slug}" was asked for`)
    if (moderation?.isMalwareBlocked)
      throw new Refusal('forbidden', `The hub takes "${slug}" for malware: ${moderation.summary || 'it is blocked'}`)
    const version = wanted ?? latestVersion?.version
    const query = { slug: skill.slug, ownerHandle, version }
    const { bytes, type } = await this.#client.bytes('/api/v1/download', query, this.#maxBytes)
    const handoff = type.startsWith('application/json') ? readHandoff(bytes) : undefined
    return {
      slug: skill.slug,
      version: version ?? handoff?.commit.slice(0, 12) ?? '',
      owner: owner?.handle ?? undefined,
      content: handoff ? { repository: handoff.repo, commit: handoff.commit, folder: handoff.path } : bytes,
      hashes: handoff || version === undefined ? new Map() : await this.#hashes(skill.slug, version, ownerHandle),
      suspicion: moderation?.isSuspicious ? moderation.summary || 'it is suspicious' : undefined,
    }
  }

  async #find(slug: string, ownerHandle: string | undefined): Promise<Detail> {
    return await this.#client.json(pathOf(slug), { ownerHandle }, Detail)
  }

  async #hashes(slug: string, version: string, ownerHandle: string | undefined): Promise<ReadonlyMap<string, string>> {
    const path = `${pathOf(slug)}/versions/${encodeURIComponent(version)}`
    const { files } = (await this.#client.json(path, { ownerHandle }, VersionFiles)).version
    return new Map(files.flatMap(({ path: name, sha256 }) => (sha256 === null ? [] : [[name, sha256.toLowerCase()]])))
  }
}

function readHandoff(bytes: Uint8Array): v.InferOutput<typeof Handoff> {
  const result = v.safeParse(Handoff, readFailedJson(new TextDecoder().decode(bytes)))
  if (result.success) return result.output
  throw new Refusal(hubFailed, 'The hub answered with neither an archive nor the place of one')
}
const pathOf = (slug: string): string => `/api/v1/skills/${encodeURIComponent(slug)}`
const timeOf = (ms: number | null | undefined): string | null =>
  ms === null || ms === undefined || Number.isNaN(new Date(ms).getTime()) ? null : toIso(ms)

function toItem({ slug, displayName, summary, stats, updatedAt, latestVersion }: ListedSkill) {
  return {
    slug,
    name: displayName || slug,
    description: summary ?? '',
    version: latestVersion?.version ?? '',
    downloads: stats.downloads ?? 0,
    stars: stats.stars ?? 0,
    updated_at: timeOf(updatedAt),
  }
}
