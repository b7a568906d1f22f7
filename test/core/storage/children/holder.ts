/** Takes the lock of a home, says so, and keeps it until standard input ends or it is killed. */
import { once } from 'node:events'
import { HomeInUse, lockHome } from '../../../../core/storage/lock.ts'

try {
  const lock = await lockHome(process.argv[2] ?? '')
  lock.publish('127.0.0.1:4545')
  process.stdout.write(`held ${process.pid}\n`)
  process.stdin.resume()
  await once(process.stdin, 'end')
  lock[Symbol.dispose]()
} catch (error) {
  if (!(error instanceof HomeInUse)) throw error
  process.stdout.write(`in use by ${error.pid} at ${error.address}\n`)
  process.exitCode = 3
}
