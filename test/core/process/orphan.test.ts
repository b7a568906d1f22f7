import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { bridgePort, perlWords } from '../../../core/process/perl.ts'
import { temporaryFolder } from '../../support/plugin-folder.ts'

it.each([
  ['does not start once the daemon is gone', true],
  ['starts while the daemon is there', false],
])('a confined program %s', async (_, isGone) => {
  await using folder = await temporaryFolder()
  const made = join(folder.path, 'made')
  const [perl = '', ...words] = perlWords('perl', bridgePort, [join(folder.path, 'socket'), '0', 'touch', made])
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true })
  await once(server.listen(join(folder.path, 'output')), 'listening')
  const daemon = connect(join(folder.path, 'output'))
  const [output] = (await once(server, 'connection')) as [Socket]
  // A daemon that was killed has closed its end, and could not ask for the end of what it had just begun.
  if (isGone) await once(daemon.destroy(), 'close')
  const child = spawn(perl, words, { stdio: ['ignore', output, 'ignore'], detached: true })
  const { pid = 0 } = child
  await once(child, 'exit')
  daemon.destroy()
  output.destroy()
  server.close()
  // Without a namespace to end with, the process that forwards connections stays.
  if (!isGone) process.kill(-pid, 'SIGKILL')
  expect(existsSync(made)).toBe(!isGone)
})

it('a confined program that has started ends with the daemon', async () => {
  await using folder = await temporaryFolder()
  const [perl = '', ...words] = perlWords('perl', bridgePort, [
    join(folder.path, 'socket'),
    '0',
    'sh',
    '-c',
    'echo started; exec sleep 600',
  ])
  const child = spawn(perl, words, { stdio: ['ignore', 'pipe', 'ignore'], detached: true })
  await once(child.stdout, 'data')
  child.stdout.destroy()
  expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
})
