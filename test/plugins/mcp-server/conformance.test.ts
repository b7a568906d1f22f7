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
const child = fileURLToPath(new URL('../../fixtures/mcp/conformance.ts', import.meta.url))
const fixture = fileURLToPath(new URL('../../fixtures/mcp-conformance', import.meta.url))

let stage: ChatStage
beforeAll(async () => {
  stage = await openChat({
    config: {
      plugins: {
        paths: [fixture],
        'mcp-server': { agent: 'conformance' },
        // Tools of MCP servers wait for a person, and the suite has none.
        approvals: { agents: { conformance: 'never' } },
      },
      mcp_servers: [{ name: 'child', command: process.execPath, args: [child], risk: 'read', sampling: true }],
    },
  })
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
        { cwd: folder, timeout: 30_000 },
        (error, stdout, stderr) => resolve({ code: error ? 1 : 0, text: `${stdout}${stderr}` }),
      )
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

test.each([
  ['the daemon', '/mcp'],
  ['a program over stdio behind the daemon', '/mcp/child'],
])('%s passes all active scenarios of the conformance suite', async (_, path) => {
  const { code, text } = await run(path)
  expect({ code, failed: text.match(/✗.*/g) }).toEqual({ code: 0, failed: null })
  expect(text).toMatch(/Total: \d+ passed, 0 failed/)
})
