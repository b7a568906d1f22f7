import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { path, startDaemon } from '../cli/process.ts'
import type { Json } from '../../support/json.ts'

const key = 'a-key-of-the-operator-0123456789'
const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
let home = ''
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-inherited-'))
})
afterEach(async () => {
  await rm(home, { recursive: true, force: true })
})

const get = async (url: string, path: string): Promise<Json> => await (await fetch(`${url}${path}`, { headers })).json()
/** As another program of this user sees the environment a process was started with. */
const environment = (pid: number): Promise<string> => readFile(`/proc/${pid}/environ`, 'latin1')

describe.runIf(process.platform === 'linux')('the environment a daemon was started with', () => {
  it('has no secret in it once it serves, and everything else', async () => {
    await using daemon = await startDaemon(home, {
      env: {
        SVC_API_KEY: key,
        OPENAI_API_KEY: 'sk-canary-one',
        OPENAI_API_KEY_2: 'sk-canary-two',
        NODE_COMPILE_CACHE: undefined,
        COLOUR: 'blue=green',
        EMPTY_TOKEN: '',
        SVC_LOG_LEVEL: 'info',
        OF_MINE_DATABASE: 'postgres://me:canary-three@127.0.0.1/x',
        TLS_CERT_PATH: '/etc/cert',
      },
    })
    const seen = await environment(daemon.pid)
    expect(seen).not.toMatch(/canary|operator/)
    expect(
      seen
        .split('\0')
        .filter((line) => line !== '')
        .toSorted(),
    ).toEqual([
      'COLOUR=blue=green',
      'EMPTY_TOKEN=',
      'HOME=/nonexistent',
      'OF_MINE_DATABASE=',
      'OPENAI_API_KEY=',
      'OPENAI_API_KEY_2=',
      `PATH=${path}`,
      'SVC_API_KEY=',
      'SVC_LOG_LEVEL=info',
      'TLS_CERT_PATH=/etc/cert',
    ])
    // And they serve where they are needed.
    expect((await fetch(`${daemon.url}/api/agents`)).status).toBe(401)
    expect(
      (await get(daemon.url, '/api/providers')).providers.find(({ name }: { name: string }) => name === 'openai'),
    ).toMatchObject({ auth_status: 'configured' })
    const { probes } = await get(daemon.url, '/api/security')
    expect(probes.subprocess_sandbox).toMatchObject({
      failures: [],
      evidence: expect.not.stringContaining('secrets are left'),
    })
  })

  it('gives its secrets to a configuration that is read again, and to the next start in the same process', async () => {
    await writeFile(
      join(home, 'svc.config.mjs'),
      `const groq = { api_key: process.env.KEY_FOR_GROQ }
export default { providers: { groq, mistral: { api_key_env: 'WHAT_MISTRAL_GOT' } } }`,
    )
    await using daemon = await startDaemon(home, {
      args: ['--config', join(home, 'svc.config.mjs')],
      env: {
        SVC_API_KEY: key,
        KEY_FOR_GROQ: 'canary-groq',
        WHAT_MISTRAL_GOT: 'canary-mistral',
        SVC_PROVIDERS__COHERE__API_KEY: 'canary-cohere',
      },
    })
    const ready = async (): Promise<readonly string[]> =>
      (await get(daemon.url, '/api/providers')).providers
        .filter((one: { auth_status: string }) => one.auth_status === 'configured')
        .map(({ name }: { name: string }) => name)
        .toSorted()
    const all = ['cohere', 'groq', 'mistral']
    expect(await ready()).toEqual(expect.arrayContaining(all))
    const post = (path: string): Promise<Response> =>
      fetch(`${daemon.url}${path}`, { method: 'POST', headers, body: '{}' })
    expect((await post('/api/config/reload')).status).toBe(200)
    expect(await ready()).toEqual(expect.arrayContaining(all))
    daemon.kill('SIGHUP')
    await daemon
      .prints(/svc listening on [^]*svc listening on (http\S+)/)
      .then(([, url = '']) => Object.assign(daemon, { url }))
    expect(await ready()).toEqual(expect.arrayContaining(all))
    expect((await fetch(`${daemon.url}/api/agents`)).status).toBe(401)
    expect(await environment(daemon.pid)).not.toMatch(/canary|operator/)
  })

  it('shows no secret to another program of the same user', async () => {
    await using daemon = await startDaemon(home, { env: { SVC_API_KEY: key, OPENAI_API_KEY: 'sk-canary-one' } })
    // What a child would do, from outside any space: as this user, about the daemon.
    const look = spawn('sh', ['-c', `cd /proc/${daemon.pid} && cat environ task/*/environ cmdline | tr '\\0' '\\n'`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let text = ''
    for await (const piece of look.stdout) text += String(piece)
    expect(text).toContain('OPENAI_API_KEY=')
    expect(text).not.toMatch(/canary|operator/)
  })
})
