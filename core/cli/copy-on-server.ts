import { join } from 'node:path'
import { readVariable } from '../process/inherited.ts'
import { runSystemProgram } from '../process/operator-program.ts'
import { exits, Failure } from './failure.ts'

/**
 * Copies a database of a PostgreSQL server, consistently while it is in use, into an empty one, with the programs of
 * PostgreSQL. In one transaction: there is all of it, or nothing. `folder` holds the dump. Throws a `Failure`.
 */
export async function copyOnServer(from: string, to: string, folder: string): Promise<void> {
  const [source, target] = [addressOf(from), addressOf(to)]
  if (source.url === target.url)
    throw new Failure(exits.usage, '--database-url names the database of the home', 'name an empty one: `createdb`')
  const dump = join(folder, 'database.dump')
  const kinds = ['--no-owner', '--no-privileges']
  await run('pg_dump', ['-Fc', ...kinds, '-f', dump, '-d', source.url], source.password)
  await run('pg_restore', ['-1', ...kinds, '-d', target.url, dump], target.password)
}

/** Others on the machine can read the arguments of a program, so the password is none of them. */
function addressOf(address: string): { readonly url: string; readonly password: string | undefined } {
  const url = new URL(address)
  const password = url.searchParams.get('password') ?? decodeURIComponent(url.password)
  url.password = ''
  url.searchParams.delete('password')
  return { url: url.href, password: password === '' ? readVariable('PGPASSWORD') : password }
}

async function run(program: string, args: readonly string[], password: string | undefined): Promise<void> {
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], PGPASSWORD: password }
  const { code, stderr } = await runSystemProgram(program, args, env)
  if (code === 0) return
  if (code === 'not-found')
    throw new Failure(exits.failed, `there is no ${program} here`, 'install the client programs of PostgreSQL')
  throw new Failure(
    exits.failed,
    `${program} failed: ${stderr.trim()}`,
    'nothing was copied; the database of --database-url has to be empty and reachable, and the programs as new as the server',
  )
}
