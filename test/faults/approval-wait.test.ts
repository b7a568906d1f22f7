import Sqlite from 'better-sqlite3'
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { startDaemon } from '../support/daemon.ts'
import type { Json } from '../support/json.ts'

const json = { 'content-type': 'application/json' }

it('a daemon that is killed while a turn waits for a person goes on with it, and acts once', async () => {
  const home = await mkdtemp(join(tmpdir(), 'svc-approval-wait-'))
  const file = join(home, 'launches.log')
  const env = { SVC_PLUGINS__LAUNCHER__FILE: file, SVC_PLUGINS__APPROVALS__TIMEOUT_SECS: '300' }
  await cp(fileURLToPath(new URL('../fixtures/plugins/launcher', import.meta.url)), join(home, 'plugins', 'launcher'), {
    recursive: true,
  })
  const states = (): unknown => {
    const db = new Sqlite(join(home, 'data', 'svc.db'), { readonly: true })
    try {
      return db.prepare('SELECT state FROM journal_turn').pluck().all()
    } finally {
      db.close()
    }
  }
  try {
    let id: string
    {
      await using daemon = await startDaemon({ home, env })
      const post = (path: string, body: object): Promise<Json> =>
        fetch(daemon.url + path, { method: 'POST', headers: json, body: JSON.stringify(body) }).then((answer) =>
          answer.json(),
        )
      const { agent_id: agent } = await post('/api/agents', {
        manifest_toml: 'name = "digger"\n[capabilities]\ntools = ["*"]\n',
      })
      const lost = post(`/api/agents/${agent}/message`, { message: 'use launch {"label": "once"}' }).catch(
        (error: unknown) => error,
      )
      await expect.poll(states).toEqual(['waiting'])
      const { approvals } = (await (await fetch(`${daemon.url}/api/approvals`)).json()) as {
        approvals: { id: string }[]
      }
      id = approvals[0]?.id ?? ''
      await daemon.kill()
      await lost
    }
    await using daemon = await startDaemon({ home, env })
    expect((await fetch(`${daemon.url}/api/approvals/${id}/approve`, { method: 'POST' })).status).toBe(200)
    await expect.poll(states).toEqual(['done'])
    expect(await readFile(file, 'utf8')).toBe('once\n')
    const { total } = (await (await fetch(`${daemon.url}/api/approvals`)).json()) as { total: number }
    expect(total).toBe(1)
  } finally {
    await rm(home, { recursive: true, force: true })
  }
})
