import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { createLauncher } from '../../../core/process/launcher.ts'
import { killOrphanProcesses } from '../../../core/process/orphan-processes.ts'
import { Tail } from '../../../core/process/tail.ts'

it('a program gets nothing but its limits where the system forbids the rest', async () => {
  const { isolation, command } = await createLauncher(async () => false)
  const line = command(['/bin/true', '--', 'x'], {
    timeoutMs: 30_000,
    folder: '/',
    operator: false,
    read: [],
    write: [],
    hidden: ['/tmp'],
    code: [],
    proxy: undefined,
  }).join(' ')
  expect(isolation).toMatchObject({ level: 'none', network: 'host' })
  expect(line).toMatch(/\/bin\/true -- x$/)
  expect(line).not.toMatch(/unshare|bwrap/)
  expect(line).toMatch(/prlimit .*--core=0 --cpu=35 .*--as=68719476736 .*--nofile=1024/)
})

it('a program that left its group is found by its mark', async () => {
  const mark = crypto.randomUUID()
  const stray = spawn('sleep', ['30'], {
    env: { SVC_PROCESS: mark, PATH: '/usr/bin:/bin' },
    detached: true,
    stdio: 'ignore',
  })
  await once(stray, 'spawn')
  const gone = once(stray, 'exit')
  await killOrphanProcesses('another mark')
  expect(stray.exitCode).toBeNull()
  await killOrphanProcesses(mark)
  expect((await gone)[1]).toBe('SIGKILL')
})

it('what is taken is not given again, and what was dropped is counted once', () => {
  const tail = new Tail(4)
  tail.add(Buffer.from('abcdef'))
  expect(tail.take()).toEqual({ text: 'cdef', droppedBytes: 2 })
  expect(tail.take()).toEqual({ text: '', droppedBytes: 0 })
  for (let n = 0; n < 3000; n++) tail.add(Buffer.from('z'))
  expect(tail.take()).toEqual({ text: 'zzzz', droppedBytes: 2996 })
})
