import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { documentBlocks } from '../../support/documents.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'

const WEBHOOK_TOKEN = 'a-token-of-at-least-32-characters'

/** What stands in requests that are not sent, and what a test daemon lacks for them. */
const needs: Readonly<Record<string, string>> = {
  '/api/pairing/complete': 'the code of `svc device pair`',
  'runs/$run/pause': 'a run that has not ended',
  'runs/$run/resume': 'a run that is paused',
  'runs/$run/cancel': 'a run that has not ended',
  '{"role": "user"}': 'an account of the channel, which the page removes again',
  '"recipient": "4711"': 'an account of Telegram that has written to this chat',
  '{"type": "memory"}': 'a server of the npm registry',
  '/api/integrations/memory': 'the integration of the line before',
  '/api/plugins/install': 'a package of the npm registry',
  '/api/skills/install': 'a folder of the reader',
  '"path":"/home/you/.openclaw"': 'a home of another system',
  '"source":"openclaw"': 'a home of another system',
  signed_manifest: 'a manifest that the commands above have signed',
}

/** Pages with `curl` blocks that ask the daemon. */
const pages = Map.groupBy(
  documentBlocks('sh', 'bash').filter(({ text }) => /^[^#\n]*curl\b.*(?:localhost|127\.0\.0\.1):4545/m.test(text)),
  ({ page }) => page,
)

let home: string
let host: TestHost
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-requests-'))
  await mkdir(join(home, 'plugins'), { mode: 0o700 })
  const plugin = documentBlocks('ts').find(({ page }) => page === 'README.md')
  await writeFile(join(home, 'plugins/hello.ts'), plugin?.text ?? '')
  const webhook = { token: 'a-shared-secret-of-32-characters', agent_name: 'assistant', allowed_users: ['ada'] }
  host = await startHost({
    home,
    config: { webhook_triggers: { enabled: true, token: WEBHOOK_TOKEN }, channels: { webhook } },
    fetch: () => Promise.reject(new TypeError('there is no network in this test')),
  })
  await host.json('POST', '/api/agents', { manifest_toml: 'name = "support"' })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})

describe('the requests of the documents', () => {
  // As a reader runs them: those of a page one after the other.
  it.each([...pages])('of %s are answered', async (_page, blocks) => {
    const address = host.url.replace('http://', '')
    const script = blocks.map(({ text }) => text.replaceAll(/(?:localhost|127\.0\.0\.1):4545/g, address)).join('\n')
    const { stderr } = await promisify(execFile)('bash', ['-c', `${prelude}\n${script}\nexit 0`], {
      // Where files that a reader makes belong.
      cwd: home,
      env: { ...process.env, SVC_API_KEY: 'not-asked-for', SVC_WEBHOOK_TOKEN: WEBHOOK_TOKEN },
      timeout: 50_000,
    })
    const answers = [...stderr.matchAll(/^(\d{3}|skipped) .*$/gm)]
    expect(answers.length).toBeGreaterThan(0)
    expect(
      answers.flatMap(([line, status]) => (status === 'skipped' || /^[123]/.test(status ?? '') ? [] : line)),
    ).toEqual([])
  })

  it('that are not sent are in the documents', () => {
    const all = [...pages.values()].flat().map(({ text }) => text.replaceAll('\\"', '"'))
    expect(Object.keys(needs).filter((part) => !all.some((text) => text.includes(part)))).toEqual([])
  })
})

/** `$run` is an id by then. */
const skipped = Object.keys(needs).map((part) => `*'${part.replace('$run', "'*'")}'*`)
/** Streams that do not end are left after a second. Commands of svc are tested apart. */
const prelude = `
svc() { :; }
npx() { :; }
curl() {
  local seconds=20
  case "$*" in
    ${skipped.join('|')}) echo "skipped $*" >&2; return;;
    *-N*) seconds=1;;
  esac
  command curl -s --max-time $seconds -w '%{stderr}%{http_code} %{method} %{url_effective}\\n' "$@"
}
`
