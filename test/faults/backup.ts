import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startDaemon } from '../support/daemon.ts'
import type { DaemonProcess } from '../support/daemon.ts'
import { generator } from './crash.ts'
import type { Json } from '../support/json.ts'

export interface BackupReport {
  readonly rounds: number
  readonly old: number
  readonly restored: number
  readonly writes: number
  readonly seed: number
  readonly problems: readonly string[]
}

const json = { 'content-type': 'application/json' }
const KEYS = 30

/**
 * Makes a backup while others write, then kills the daemon at random moments of a restore: what comes up is all of the
 * old or all of the backup, never some of each, and the audit trail verifies.
 */
export async function backup(options: {
  readonly rounds: number
  readonly seed: number
  readonly built?: boolean
}): Promise<BackupReport> {
  const random = generator(options.seed)
  const home = mkdtempSync(join(tmpdir(), 'svc-backup-'))
  const problems: string[] = []
  let [old, restored, writes] = [0, 0, 0]
  const start = (): Promise<DaemonProcess> =>
    startDaemon({
      home,
      built: options.built ?? false,
      env: { SVC_RATE_LIMIT__TOKENS_PER_MINUTE: '1000000000', SVC_PLUGINS__BACKUPS__MAX_BACKUPS: '10000' },
    })
  const send = async (daemon: DaemonProcess, path: string, method: string, body?: object): Promise<Json> => {
    const answer = await fetch(daemon.url + path, {
      method,
      headers: json,
      ...(body && { body: JSON.stringify(body) }),
    })
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${await answer.text()}`)
    return await answer.json()
  }
  let daemon = await start()
  try {
    const { agent_id: agent } = await send(daemon, '/api/agents', 'POST', {
      manifest_toml: 'name = "kept"\n[model]\nprovider = "builtin"\nmodel = "offline"\n',
    })
    const mark = (value: string): Promise<unknown> =>
      Promise.all(
        Array.from({ length: KEYS }, (_, n) => send(daemon, `/api/memory/agents/${agent}/kv/k${n}`, 'PUT', { value })),
      )
    const read = async (): Promise<readonly string[]> => {
      const { kv_pairs: pairs } = await send(daemon, `/api/memory/agents/${agent}/kv`, 'GET')
      return pairs.filter(({ key }: { key: string }) => /^k\d+$/.test(key)).map(({ value }: { value: string }) => value)
    }
    for (let round = 0; round < options.rounds && problems.length === 0; round++) {
      await mark(`saved-${round}`)
      const running = { on: true }
      const load = (async () => {
        while (running.on) {
          try {
            await Promise.all(
              [0, 1, 2, 3].map((n) =>
                send(daemon, `/api/memory/agents/${agent}/kv/load${n}`, 'PUT', { value: writes++ }),
              ),
            )
          } catch {
            return /* killed, which is what is wanted */
          }
        }
      })()
      const { filename } = await send(daemon, '/api/backup', 'POST')
      await mark(`later-${round}`)
      const asked = send(daemon, '/api/restore', 'POST', { filename }).catch(
        () => undefined /* killed before it was answered */,
      )
      const late = new Promise((resolve) => {
        setTimeout(resolve, random() * 2_500)
      })
      await Promise.race([Promise.all([asked, late]), late])
      await daemon.kill()
      running.on = false
      await Promise.all([asked, load])
      daemon = await start()
      const found = await read()
      const kinds = new Set(found)
      if (found.length !== KEYS || kinds.size !== 1 || ![`saved-${round}`, `later-${round}`].includes(found[0] ?? ''))
        problems.push(`round ${round}: ${found.length} keys hold ${[...kinds].join(', ')}`)
      if (kinds.has(`later-${round}`)) old++
      else restored++
      const audit = await send(daemon, '/api/audit/verify', 'GET')
      if (audit.status !== 'valid') problems.push(`round ${round}: the trail is ${JSON.stringify(audit)}`)
      for (const { filename: name } of (await send(daemon, '/api/backups', 'GET')).backups)
        await fetch(`${daemon.url}/api/backups/${name}`, { method: 'DELETE' })
    }
    await daemon.stop()
    const left = readdirSync(home).filter((name) => /^\.restore-|data\.restore-|restore\.json/.test(name))
    if (left.length > 0) problems.push(`left behind: ${left.join(', ')}`)
    return { rounds: options.rounds, old, restored, writes, seed: options.seed, problems }
  } finally {
    await daemon.kill()
    rmSync(home, { recursive: true, force: true })
  }
}
