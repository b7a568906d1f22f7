import type { Daemon, RawAnswer } from 'svc/internal'
import type { Finding, ProbeCase } from '../security/contract.ts'
import { publicHealth } from './public-health.ts'
import { readOwnJson } from 'svc/internal'

const keys = 'panic_count,restart_count,status,uptime_seconds'

/** The public health over the open port, without a key, and the projection that makes it. */
export async function probe(daemon: Daemon): Promise<Finding> {
  const canary = { ...daemon.health(), version: 'canary-version', dataDir: 'canary-folder', agents: ['canary-agent'] }
  const cases: ProbeCase[] = [
    {
      name: 'a field that is added to the health stays inside',
      passed: keysOf(publicHealth(canary)) === keys && !JSON.stringify(publicHealth(canary)).includes('canary'),
    },
  ]
  const host = daemon.ownPort.host()
  if (host === undefined) return { cases, evidence: 'no port is open', skipped: true }
  const ask = (method: string, path: string): Promise<RawAnswer | undefined> =>
    daemon.ownPort.exchange(`${method} ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  const health = await ask('GET', '/api/health')
  const head = await ask('HEAD', '/api/health')
  const detail = await ask('GET', '/api/health/detail')
  const body = health?.body ?? ''
  const parsed: unknown = health?.status === 200 ? readOwnJson(body) : undefined
  const { dataDir, homeDir, apiKeySet } = daemon.config()
  const leaks = [daemon.build.version, daemon.build.gitSha, dataDir, homeDir, process.version].filter(
    (word) => word.length > 3 && body.includes(word),
  )
  cases.push(
    { name: 'it has four fields', passed: isRecord(parsed) && keysOf(parsed) === keys },
    {
      name: 'they are numbers and a word',
      passed:
        isRecord(parsed) &&
        (parsed['status'] === 'ok' || parsed['status'] === 'degraded') &&
        ['uptime_seconds', 'panic_count', 'restart_count'].every((key) => Number.isInteger(parsed[key])),
    },
    { name: 'it names no version and no folder', passed: leaks.length === 0 },
    { name: 'HEAD says no more', passed: head?.status === 200 && head.body === '' },
  )
  if (apiKeySet)
    cases.push({
      name: 'the detail needs the key',
      passed: detail?.status === 401 && !detail.body.includes(daemon.build.version),
    })
  return {
    cases,
    evidence: apiKeySet
      ? 'the detail answers 401 without the key'
      : 'no key is set: the details are open to everybody who can reach the port',
  }
}

const keysOf = (value: object): string => Object.keys(value).toSorted().join()
const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
