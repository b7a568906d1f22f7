import { Refusal } from 'svc/sdk'
import type { HubClient } from './client.ts'
import { Repositories } from './wire.ts'

const PAGE_SIZE = 20
/** GitHub answers no more results of one search. */
const MAX_RESULTS = 1000

/** Skills in public repositories, found by the search of GitHub. */
export class Marketplace {
  readonly #client: HubClient
  readonly #qualifiers: string
  readonly #maxBytes: number
  /** `qualifiers` are added to each search, such as `topic:agent-skills`. */
  constructor(client: HubClient, qualifiers: string, maxBytes: number) {
    this.#client = client
    this.#qualifiers = qualifiers
    this.#maxBytes = maxBytes
  }

  /** A failure of the other side is an answer with `error` and without results. */
  async search(q: string, page: number) {
    const none = { results: [], total: 0, page }
    if (q.trim() === '') return none
    if ((page - 1) * PAGE_SIZE >= MAX_RESULTS) return none
    try {
      const found = await this.#client.json(
        '/search/repositories',
        { q: `${q} ${this.#qualifiers}`.trim(), per_page: String(PAGE_SIZE), page: String(page) },
        Repositories,
      )
      const results = found.items.map(({ full_name, description, html_url, stargazers_count, owner }) => ({
        name: full_name,
        description: description ?? '',
        stars: stargazers_count,
        url: html_url,
        author: owner.login,
        // A search names neither.
        downloads: null,
        version: null,
      }))
      return { results, total: found.total_count, page }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return { ...none, error: error.message }
    }
  }

  /** The repository as a .zip; `ref` is a branch, a tag or a commit. */
  async download(repository: string, ref: string | undefined): Promise<Uint8Array> {
    const path = `/repos/${repository}/zipball${ref === undefined ? '' : `/${encodeURIComponent(ref)}`}`
    return (await this.#client.bytes(path, {}, this.#maxBytes)).bytes
  }
}
