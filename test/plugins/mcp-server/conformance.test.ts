import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'

const suite = fileURLToPath(
  new URL('../../../node_modules/@modelcontextprotocol/conformance/dist/index.js', import.meta.url),
)
const fixture = fileURLToPath(new URL('../../fixtures/mcp-conformance', import.meta.url))

let stage: ChatStage
beforeAll(async () => {
  stage = await openChat({ config: { plugins: { paths: [fixture], 'mcp-server': { agent: 'conformance' } } } })
  await stage.spawn('conformance')
})
afterAll(() => stage[Symbol.asyncDispose]())

/** The output of the suite, and whether all scenarios of the active ones passed. */
async function run(path: string): Promise<{ readonly code: number; readonly text: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-mcp-conformance-'))
  try {
    return await new Promise((resolve) => {
      execFile(
        process.execPath,
        [suite, 'server', '--url', `${stage.host.url}${path}`],
        { cwd: folder, timeout: 60_000 },
        (error, stdout, stderr) => resolve({ code: error ? 1 : 0, text: `${stdout}${stderr}` }),
      )
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

test('the daemon passes all active scenarios of the conformance suite', async () => {
  const { code, text } = await run('/mcp')
  expect({ code, failed: text.match(/✗.*/g) }).toEqual({ code: 0, failed: null })
  expect(text).toMatch(/Total: \d+ passed, 0 failed/)
})
