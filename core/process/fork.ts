import { createRequire } from 'node:module'
import type ChildProcess from 'node:child_process'
import { safePath } from './environment.ts'

/** Another process of the daemon's own code. It ends with the daemon. */
export interface Own {
  /** Nothing happens when it is gone. */
  send(message: object): void
  kill(): void
}

/** Runs a file of this installation with nothing of the daemon's environment. `gone` is called once, also when it was killed. */
export function forkOwn(file: string, hear: (message: unknown) => void, gone: () => void): Own {
  // Loaded when it is needed, and at once, because whoever forks has something to say.
  const { fork } = createRequire(import.meta.url)('node:child_process') as typeof ChildProcess
  const child = fork(file, [], {
    env: { PATH: safePath.join(':') },
    execArgv: ['--max-semi-space-size=1', '--disable-warning=ExperimentalWarning'],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  // The daemon does not live on for it.
  child.unref()
  child.channel?.unref()
  let isGone = false
  const end = (): void => {
    if (isGone) return
    isGone = true
    gone()
  }
  child.on('message', hear)
  child.once('error', end)
  child.once('exit', end)
  return {
    send: (message) => {
      if (child.connected) child.send(message, () => undefined /* it is gone, which `gone` tells */)
    },
    kill: () => {
      child.kill('SIGKILL')
    },
  }
}
