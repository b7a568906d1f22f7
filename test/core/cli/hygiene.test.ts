import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { closeProcess } from '../../../core/cli/hygiene.ts'
import { startDaemon } from './process.ts'

describe('a daemon that serves', () => {
  it.each(['--inspect', '--inspect=0.0.0.0:9229', '--inspect-brk', '--inspect-wait', '--heapsnapshot-signal=SIGUSR2', '--report-on-signal'])('does not start with %s', (flag) => {
    expect(() => closeProcess([flag], undefined)).toThrow(flag.split('=')[0])
    expect(() => closeProcess([], `--enable-source-maps ${flag}`)).toThrow(flag.split('=')[0])
  })

  it('starts with everything else, and leaves the environment out of reports', () => {
    closeProcess(['--conditions=svc-source', '--inspector-is-no-flag'], '--max-old-space-size=100')
    expect(process.report.excludeEnv).toBe(true)
  })

  it('says so and ends when it is asked to with a debugger', async () => {
    const main = fileURLToPath(new URL('../../../core/cli/main.ts', import.meta.url))
    const child = spawn(process.execPath, ['--inspect=127.0.0.1:0', '--conditions=svc-source', main, 'start', '--home', '/nonexistent', '--port', '0'], { stdio: 'pipe' })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => { said += text })
    const code = await new Promise((resolve) => { child.once('close', resolve) })
    expect([code, said.includes('whoever reaches it reads every key')]).toEqual([5, true])
  })

  it('does not open its debugger when the signal for it comes', async () => {
    const home = await mkdtemp(join(tmpdir(), 'svc-hygiene-'))
    try {
      await using daemon = await startDaemon(home)
      daemon.kill('SIGUSR1')
      await daemon.prints(/SIGUSR1 is ignored/)
      expect((await fetch(`${daemon.url}/api/health`)).status).toBe(200)
      daemon.kill('SIGTERM')
      expect((await daemon.ended).stderr).not.toContain('Debugger listening')
    } finally { await rm(home, { recursive: true, force: true }) }
  })
})
