import { clock } from './clock.ts'
import { cluster } from './cluster.ts'
import { configuration } from './configuration.ts'
import { corrupt } from './corrupt.ts'
import { crashpoint } from './crashpoint.ts'
import { canMount, diskfull } from './diskfull.ts'
import { drain } from './drain.ts'
import { fsync } from './fsync.ts'
import { fuzz } from './fuzz.ts'
import { ioerr } from './ioerr.ts'
import { limits } from './limits.ts'
import { locked } from './locked.ts'
import { panic } from './panic.ts'
import { replica } from './replica.ts'
import { rmw } from './rmw.ts'
import type { FaultOptions, FaultReport } from './report.ts'
import { hasSchemathesis, schemathesis } from './schemathesis.ts'
import { canInject } from './strace.ts'

export interface Fault {
  readonly run: (options: FaultOptions) => Promise<FaultReport>
  /** Rounds, seconds or requests: in `npm test`, and by `npm run faults`. */
  readonly short: number
  readonly long: number
  /** What is promised, as a sentence. */
  readonly promise: string
  /** What this machine lacks for it; absent when nothing. */
  readonly lacks?: string | undefined
}

const tracing = canInject ? undefined : 'strace, and the right to trace'
/** Every fault that is one function: a daemon of its own, figures, and what was wrong. */
export const table: Readonly<Record<string, Fault>> = {
  crashpoint: {
    run: crashpoint,
    short: 2,
    long: 150,
    promise: 'killed at any call that puts bytes on disk, it has all that was acknowledged',
    lacks: tracing,
  },
  fsync: { run: fsync, short: 20, long: 100, promise: 'no answer leaves before its rows are synced', lacks: tracing },
  ioerr: { run: ioerr, short: 3, long: 100, promise: 'a sync or write that fails costs one request', lacks: tracing },
  diskfull: {
    run: diskfull,
    short: 1,
    long: 10,
    promise: 'a full disk refuses writes and nothing else, until there is room',
    lacks: canMount ? undefined : 'the right to mount a small file system',
  },
  locked: { run: locked, short: 3, long: 20, promise: 'a foreign lock on the database holds up writes only' },
  corrupt: {
    run: corrupt,
    short: 8,
    long: 80,
    promise: 'damaged files are told of, with what to do, and never replaced by empty ones',
  },
  clock: {
    run: clock,
    short: 1,
    long: 10,
    promise: 'a clock that jumps changes neither limits nor tickets nor the trail',
  },
  cluster: {
    run: cluster,
    short: 1,
    long: 30,
    promise: 'daemons on one database lose nothing and do nothing twice, whatever happens to one of them',
  },
  configuration: {
    run: configuration,
    short: 3,
    long: 34,
    promise: 'reading the configuration again fails nobody, and a broken one changes nothing',
  },
  drain: { run: drain, short: 8, long: 70, promise: 'a stop takes nothing new, tells everybody and forgets nothing' },
  replica: { run: replica, short: 1, long: 20, promise: 'a home has one daemon, also after a kill' },
  limits: { run: limits, short: 1, long: 5, promise: 'few descriptors, a small heap and floods are survived' },
  panic: { run: panic, short: 2, long: 50, promise: 'code that throws costs one answer and is counted' },
  fuzz: { run: fuzz, short: 800, long: 100_000, promise: 'no request of any shape is a 500 or a hang' },
  schemathesis: {
    run: schemathesis,
    short: 1,
    long: 25,
    promise: 'no answer of a status, a type or a shape that the OpenAPI document does not tell of',
    lacks: hasSchemathesis
      ? undefined
      : 'schemathesis: pip install schemathesis==4.32.5, on the PATH or named by SCHEMATHESIS',
  },
  rmw: { run: rmw, short: 60, long: 2_000, promise: 'what was acknowledged is what the next request reads' },
}
