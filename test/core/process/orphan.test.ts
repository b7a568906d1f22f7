import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { bridgePort, perlWords, startWithDaemon } from '../../../core/process/perl.ts'
import { eventually } from '../../support/eventually.ts'
import { temporaryFolder } from '../../support/plugin-folder.ts'

const scripts = [
  ['with a network', (folder: string) => [bridgePort, join(folder, 'socket'), '0']],
  ['without a network', () => [startWithDaemon]],
] as const
it.each(
  scripts.flatMap(([kind, script]) => [
    [kind, 'does not start once the daemon is gone', script, true] as const,
    [kind, 'starts while the daemon is there', script, false] as const,
  ]),
)('a confined program %s %s', async (_kind, _what, scriptIn, isGone) => {
  await using folder = await temporaryFolder()
  const made = join(folder.path, 'made')
  const [script = '', ...args] = scriptIn(folder.path)
  const [perl = '', ...words] = perlWords('perl', script, [...args, 'touch', made])
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
  if (!isGone && script === bridgePort) process.kill(-pid, 'SIGKILL')
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

it('a confined program that said what the daemon never read ends with it', async () => {
  await using folder = await temporaryFolder()
  const started = join(folder.path, 'started')
  const server = createServer({ pauseOnConnect: true })
  await once(server.listen(join(folder.path, 'output')), 'listening')
  const output = connect(join(folder.path, 'output'))
  const [daemon] = (await once(server, 'connection')) as [Socket]
  const [perl = '', ...words] = perlWords('perl', bridgePort, [
    join(folder.path, 'socket'),
    '0',
    'sh',
    '-c',
    'echo hello; : > "$0"; exec sleep 600',
    started,
  ])
  const child = spawn(perl, words, { stdio: ['ignore', output, 'ignore'], detached: true })
  await eventually(() => expect(existsSync(started)).toBe(true))
  const ended = once(child, 'exit')
  output.destroy()
  daemon.destroy()
  expect(await ended).toEqual([null, 'SIGKILL'])
  server.close()
})

it('the network bridge of a program ends with the daemon, also where the first process of its namespace does not', async () => {
  await using folder = await temporaryFolder()
  const started = join(folder.path, 'started')
  const program = ['sh', '-c', ': > "$0"; exec sleep 600', started]
  // Without `--die-with-parent`, as where bubblewrap was killed before that was set.
  const namespace = ['--unshare-user', '--unshare-pid', '--new-session', '--sync-fd', '3', '--dev-bind', '/', '/']
  const words = perlWords('perl', bridgePort, [join(folder.path, 'socket'), '0', ...program])
  const child = spawn('bwrap', [...namespace, '--proc', '/proc', '--', ...words], {
    stdio: ['ignore', 'pipe', 'ignore', 'pipe'],
  })
  await eventually(() => expect(existsSync(started)).toBe(true))
  // Closed when nothing is left in the namespace.
  const ended = once(child.stdio[3] as Socket, 'close')
  ;(child.stdio[3] as Socket).resume()
  child.stdout?.destroy()
  await ended
})
