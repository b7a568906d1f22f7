import { hash } from 'node:crypto'
import { buffer } from 'node:stream/consumers'
import { ZipFile } from 'yazl'
import { startVendor } from './vendor-server.ts'
import type { Answering, RecordedCall, VendorServer } from './vendor-server.ts'

export interface HubSkillStage {
  readonly slug: string
  readonly owner?: string
  /** Its answer names another one. */
  readonly named?: string
  readonly version?: string
  readonly displayName?: string
  readonly summary?: string
  readonly topics?: readonly string[]
  readonly files: Readonly<Record<string, string>>
  /** In place of the archive of the files. */
  readonly archive?: Uint8Array
  /** Names of files whose hashes are those of another text. */
  readonly wrongHashes?: readonly string[]
  readonly moderation?: { readonly isSuspicious: boolean; readonly isMalwareBlocked: boolean; readonly summary: string }
  /** It lies in a public repository: the hub hands over where. */
  readonly repository?: { readonly repo: string; readonly commit: string; readonly path: string }
}
export interface FakeClawHub extends VendorServer {
  readonly skills: HubSkillStage[]
  /** What the next requests are answered with, whatever they ask. */
  fail(status: number | undefined, headers?: Readonly<Record<string, string>>, body?: string): void
  /** Paths with queries of the requests since the last call. */
  asked(): readonly string[]
}

/** The keys of a query that each path takes; a request with another one is refused. */
const queries: Readonly<Record<string, readonly string[]>> = {
  '/api/v1/search': ['q', 'limit'],
  '/api/v1/skills': ['sort', 'limit', 'cursor'],
  '/api/v1/download': ['slug', 'version', 'ownerHandle'],
}
const sorts = new Set([
  'updated',
  'recommended',
  'createdAt',
  'newest',
  'downloads',
  'stars',
  'rating',
  'name',
  'trending',
])

/**
 * The public part of ClawHub: search, lists with cursors, details, versions, files and archives, with its texts for
 * what is not there and its limits. Source: `docs/http-api.md` and `convex/downloads.ts` of openclaw/clawhub. It is the
 * search and the archives of GitHub as well: `/search/repositories` and `/repos/…/zipball`.
 */
export async function startClawHub(): Promise<FakeClawHub> {
  const skills: HubSkillStage[] = []
  let failure: { readonly status: number; readonly headers: Readonly<Record<string, string>>; body: string } | undefined
  let seen = 0
  const server = await startVendor(async (call, answer) => {
    if (failure) return answer.raw(failure.status, failure.headers, failure.body)
    if (call.method !== 'GET') return answer.text(405, 'Method not allowed', 'text/plain')
    return await route(call, answer, skills)
  })
  return Object.assign(server, {
    skills,
    fail(status: number | undefined, headers = {}, body = 'It failed') {
      failure = status === undefined ? undefined : { status, headers, body }
    },
    asked() {
      const calls = server.calls.slice(seen)
      seen = server.calls.length
      return calls.map(({ url }) => `${url.pathname}${url.search}`)
    },
  })
}

async function route(call: RecordedCall, answer: Answering, skills: readonly HubSkillStage[]): Promise<void> {
  const { pathname, searchParams: query } = call.url
  const known = queries[pathname] ?? ['ownerHandle', 'path', 'q', 'per_page', 'page']
  const unknown = [...query.keys()].find((key) => !known.includes(key))
  if (unknown !== undefined) return answer.text(400, `Unknown query ${unknown}`, 'text/plain')
  if (pathname === '/api/v1/search') return search(query, answer, skills)
  if (pathname === '/api/v1/skills') return list(query, answer, skills)
  if (pathname === '/search/repositories' || pathname.startsWith('/repos/')) return await github(call, answer, skills)
  const parts = pathname.split('/').slice(1).map(decodeURIComponent)
  const slug = pathname === '/api/v1/download' ? query.get('slug') : parts[3]
  const owner = query.get('ownerHandle')
  const found = skills.filter((each) => each.slug === slug && (owner === null || (each.owner ?? 'ada') === owner))
  const [skill] = found
  if (!skill) return answer.text(404, 'Skill not found', 'text/plain')
  if (found.length > 1)
    return answer.json(409, {
      code: 'AMBIGUOUS_SKILL_SLUG',
      message: `Found multiple skills with the slug "${slug}"; specify which one you want to install:`,
      slug,
      matches: found.map((each) => ({ ownerHandle: each.owner, slug, ref: `@${each.owner}/${slug}` })),
    })
  if (pathname === '/api/v1/download') return await download(query, answer, skill)
  if (parts.length === 4) return answer.json(200, toDetail(skill))
  if (parts[4] === 'file') {
    const text = skill.files[query.get('path') ?? '']
    return text === undefined ? answer.text(404, 'File not found', 'text/plain') : answer.text(200, text, 'text/plain')
  }
  if (parts[4] === 'versions' && parts[5] === (skill.version ?? '1.0.0'))
    return answer.json(200, {
      skill: { slug, displayName: skill.displayName ?? slug },
      version: { version: parts[5], createdAt: 1, changelog: '', files: filesOf(skill) },
    })
  return answer.text(404, 'Version not found', 'text/plain')
}

function search(query: URLSearchParams, answer: Answering, skills: readonly HubSkillStage[]): void {
  const q = query.get('q')
  if (!q) return answer.text(400, 'Missing q', 'text/plain')
  const results = skills
    .filter(({ slug, summary = '' }) => `${slug} ${summary}`.includes(q))
    .slice(0, Number(query.get('limit') ?? 20))
    .map(({ slug, displayName = slug, summary = null, version = '1.0.0', owner = 'ada' }, at) => ({
      score: 1 - at / 10,
      slug,
      displayName,
      summary,
      version,
      updatedAt: 1_730_000_000_000,
      ownerHandle: owner,
    }))
  answer.json(200, { results })
}

function list(query: URLSearchParams, answer: Answering, skills: readonly HubSkillStage[]): void {
  const limit = Number(query.get('limit') ?? 20)
  if (!sorts.has(query.get('sort') ?? 'updated')) return answer.text(400, 'Invalid sort', 'text/plain')
  const from = Number((query.get('cursor') ?? 'at-0').replace('at-', ''))
  const items = skills.slice(from, from + limit).map((skill) => {
    const { skill: fields, latestVersion } = toDetail(skill)
    return { ...fields, latestVersion, metadata: null }
  })
  answer.json(200, { items, nextCursor: from + limit < skills.length ? `at-${from + limit}` : null })
}

function toDetail({ named, slug: asked, displayName = asked, summary = '', owner = 'ada', ...skill }: HubSkillStage) {
  const { version = '1.0.0', topics = [], moderation } = skill
  return {
    skill: {
      slug: named ?? asked,
      displayName,
      summary,
      topics,
      tags: { latest: version },
      stats: { downloads: 12, stars: 3 },
      createdAt: 1_720_000_000_000,
      updatedAt: 1_730_000_000_000,
    },
    latestVersion: skill.repository ? null : { version, createdAt: 1, changelog: '' },
    metadata: null,
    owner: { handle: owner, displayName: 'Ada', image: null },
    ...(moderation && { moderation }),
  }
}

function filesOf({ files, wrongHashes = [] }: HubSkillStage) {
  return Object.entries(files).map(([path, text]) => ({
    path,
    size: text.length,
    sha256: hash('sha256', wrongHashes.includes(path) ? `${text} then` : text),
    contentType: 'text/markdown',
  }))
}

async function download(query: URLSearchParams, answer: Answering, skill: HubSkillStage): Promise<void> {
  const { repository, slug, version = '1.0.0' } = skill
  if (repository)
    return answer.json(200, { sourceRef: 'public-github', ...repository, contentHash: 'x', archiveUrl: '' })
  if ((query.get('version') ?? version) !== version) return answer.text(404, 'Version not found', 'text/plain')
  const meta = JSON.stringify({ ownerId: 'users_1', slug, version, publishedAt: 1 })
  const bytes = skill.archive ?? (await zipOf({ ...skill.files, '_meta.json': meta }))
  return await answer.stream('application/zip', [bytes])
}

async function github(
  { url, headers }: RecordedCall,
  answer: Answering,
  skills: readonly HubSkillStage[],
): Promise<void> {
  if (!headers['user-agent']) return answer.text(403, 'Request forbidden by administrative rules', 'text/plain')
  const stored = skills.filter(({ repository }) => repository)
  if (url.pathname === '/search/repositories') {
    const q = url.searchParams.get('q')
    if (!q) return answer.json(422, { message: 'Validation Failed' })
    const items = stored.map(({ repository, summary = null }) => ({
      full_name: repository?.repo,
      description: summary,
      html_url: `https://github.com/${repository?.repo}`,
      stargazers_count: 7,
      owner: { login: repository?.repo.split('/')[0] },
    }))
    return answer.json(200, { total_count: 41, incomplete_results: false, items })
  }
  const [, , owner, name, kind, ref] = url.pathname.split('/')
  const found = stored.find(({ repository }) => repository?.repo === `${owner}/${name}`)
  if (!found || kind !== 'zipball' || (ref !== undefined && ref !== found.repository?.commit))
    return answer.json(404, { message: 'Not Found' })
  const top = `${owner}-${name}-0a1b2c3`
  const entries = Object.entries(found.files).map(([file, text]) => [`${top}/${found.repository?.path}/${file}`, text])
  return await answer.stream('application/zip', [
    await zipOf({ ...Object.fromEntries(entries), [`${top}/README.md`]: 'A repository.' }),
  ])
}

/** A .zip of texts by name. */
export async function zipOf(files: Readonly<Record<string, string>>): Promise<Buffer> {
  const zip = new ZipFile()
  for (const [name, text] of Object.entries(files)) zip.addBuffer(Buffer.from(text), name, { mtime: new Date(0) })
  zip.end()
  return await buffer(zip.outputStream)
}
