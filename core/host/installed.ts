import { randomBytes } from 'node:crypto'
import type { DaemonFolders } from '../process/folders.ts'
import type { HttpServer } from '../http/server.ts'
import type { SecretScanner } from '../tools/secret-scanner.ts'
import type { Guards } from './guards.ts'
import type { HealthMonitor } from './health.ts'

/** The guards as the daemon has them, for those who try whether they hold. */
export function installedGuards({
  http,
  scanner,
  health,
  folders,
}: {
  readonly http: HttpServer
  readonly scanner: SecretScanner
  readonly health: HealthMonitor
  readonly folders: DaemonFolders
}): Guards {
  let planted: string | undefined
  return {
    exchange: (bytes) => http.exchange(bytes),
    host: () => (http.address ? new URL(http.address.url).host : undefined),
    charged: (address) => http.charged(address),
    plantedSecret() {
      if (planted === undefined) scanner.add((planted = `planted-${randomBytes(24).toString('base64url')}`))
      return planted
    },
    holdsSecret: (args) => scanner.containsSecret(args),
    programFolders: () => [folders.code.map(({ path }) => path), folders.hidden],
    rehearseOutbound: async (signal) => (await import('../net/rehearsal.ts')).rehearseOutbound(signal),
    timeScreening: async (signal) => (await import('./screening-pace.ts')).timeScreening(signal),
    impaired: (part, why) => health.impaired(part, why),
  }
}
