import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { hardenProcess } from '../../../core/cli/process-hardening.ts'
import { main, startDaemon } from './process.ts'

describe('a daemon that serves', () => {
  it.each([
    '--inspect',
    '--inspect=0.0.0.0:9229',
    '--inspect-brk',
    '--inspect-wait',
    '--heapsnapshot-signal=SIGUSR2',
    '--report-on-signal',
  ])('does not start with %s', (flag) => {
    expect(() => hardenProcess([flag], undefined)).toThrow(flag.split('=')[0])
    expect(() => hardenProcess([], `--enable-source-maps ${flag}`)).toThrow(flag.split('=')[0])
    expect(() => hardenProcess([], `"${flag.replaceAll('-', '_').replace('__', '--')}"`)).toThrow(flag.split('=')[0])
  })

  it('starts with everything else, and leaves the environment out of reports', () => {
    hardenProcess(['--conditions=svc-source', '--inspector-is-no-flag'], '--max-old-space-size=100')
    expect(process.report.excludeEnv).toBe(true)
  })

  it('says so and ends when it is asked to with a debugger', async () => {
    const child = spawn(
      process.execPath,
      ['--inspect=127.0.0.1:0', main, 'start', '--home', '/nonexistent', '--port', '0'],
      { stdio: 'pipe' },
    )
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    const code = await new Promise((resolve) => {
      child.once('close', resolve)
    })
    expect([code, said.includes('whoever can connect to it can read every key')]).toEqual([5, true])
  })

  it('closes the debugger that was opened before anybody could refuse it', async () => {
    const home = await mkdtemp(join(tmpdir(), 'svc-hardening-'))
    const early = join(home, 'early.cjs')
    // As when the signal comes while Node itself still starts.
    await writeFile(
      early,
      `process.debugPort = 0\nprocess.kill(process.pid, 'SIGUSR1')\nconst until = Date.now() + 5000\nwhile (!process.getBuiltinModule('node:inspector').url() && Date.now() < until);\nprocess.stderr.write('OPEN ' + process.getBuiltinModule('node:inspector').url() + '\\n')\n`,
    )
    try {
      await using daemon = await startDaemon(home, { env: { NODE_OPTIONS: `--require=${early}` } })
      const [, port] = await daemon.prints(/OPEN ws:\/\/127\.0\.0\.1:(\d+)/)
      await expect(fetch(`http://127.0.0.1:${port}/json`)).rejects.toThrow('fetch failed')
      daemon.kill('SIGUSR1')
      await daemon.prints(/SIGUSR1 is ignored/)
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  })

  it.runIf(process.platform === 'linux')(
    'leaves none of its memory in what a crash leaves, and writes reports without its environment',
    async () => {
      const home = await mkdtemp(join(tmpdir(), 'svc-hardening-'))
      try {
        await using daemon = await startDaemon(home)
        expect(Number.parseInt(await readFile(`/proc/${daemon.pid}/coredump_filter`, 'utf8'), 16)).toBe(0)
      } finally {
        await rm(home, { recursive: true, force: true })
      }
      const before = process.report.excludeEnv
      try {
        hardenProcess([], undefined)
        expect(process.report.getReport()).not.toHaveProperty('environmentVariables')
      } finally {
        process.report.excludeEnv = before
      }
    },
  )

  it('does not open its debugger when the signal for it comes', async () => {
    const home = await mkdtemp(join(tmpdir(), 'svc-hardening-'))
    try {
      await using daemon = await startDaemon(home)
      daemon.kill('SIGUSR1')
      await daemon.prints(/SIGUSR1 is ignored/)
      expect((await fetch(`${daemon.url}/api/health`)).status).toBe(200)
      daemon.kill('SIGTERM')
      expect((await daemon.ended).stderr).not.toContain('Debugger listening')
    } finally {
      await rm(home, { recursive: true, force: true })
    }
  })
})
