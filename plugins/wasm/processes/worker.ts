import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { ModuleProblem } from '../bytes.ts'
import type { GuestOutcome } from '../contract.ts'
import type { GuestData, GuestMessage } from '../guest.ts'
import { FUEL, HOST, meter, REFUSED } from '../meter.ts'

/** The cost of a host call beside one unit for each byte moved. */
const CALL_COST = 100n
const LOG_CHARS = 65_536

// Posted by the daemon's own runner, in this very form.
const data = workerData as GuestData
const port = parentPort
if (!port) throw new Error('this is the inside of a thread')

/** What the guest did that its contract does not allow. */
class ContractProblem extends Error {
  override readonly name = 'ContractProblem'
}
/** Thrown through the guest when it cannot pay for what the host does. */
class Empty extends Error {
  override readonly name = 'Empty'
}

interface Guest {
  readonly memory: WebAssembly.Memory
  /** What is left of the fuel; below zero when a stretch of code could not be paid for. */
  fuel: bigint
  readonly refused: boolean
  alloc(size: number): number
  execute(pointer: number, length: number): bigint
}

let guest: Guest | undefined
let log = ''

function read(pointer: number, length: number): Uint8Array {
  if (!guest) throw new ContractProblem('the host was called before the guest is there')
  const [from, size] = [pointer >>> 0, length >>> 0]
  // Of the memory as it is now: it may have grown.
  if (from + size > guest.memory.buffer.byteLength)
    throw new ContractProblem('a pointer and a length lead out of the memory')
  return new Uint8Array(guest.memory.buffer, from, size)
}

/** Copies bytes into room that the guest makes for them. Returns where. */
function give(bytes: Uint8Array): number {
  if (!guest) throw new ContractProblem('the host was called before the guest is there')
  const pointer = guest.alloc(bytes.byteLength)
  read(pointer, bytes.byteLength).set(bytes)
  return pointer
}

function pay(units: bigint): void {
  if (!guest) return
  guest.fuel -= units
  if (guest.fuel < 0n) throw new Empty('the fuel is used up')
}

const host = {
  host_call(pointer: number, length: number): bigint {
    pay(CALL_COST + BigInt(length >>> 0))
    const request = read(pointer, length).slice()
    const ready = new Int32Array(data.ready)
    Atomics.store(ready, 0, 0)
    port.postMessage({ type: 'call', request } satisfies GuestMessage)
    Atomics.wait(ready, 0, 0)
    const answer: unknown = receiveMessageOnPort(port)?.message
    if (!(answer instanceof Uint8Array)) throw new ContractProblem('the host gave no answer')
    pay(BigInt(answer.byteLength))
    return (BigInt(give(answer)) << 32n) | BigInt(answer.byteLength)
  },
  host_log(level: number, pointer: number, length: number): void {
    pay(CALL_COST + BigInt(length >>> 0))
    if (log.length < LOG_CHARS)
      log += `${level} ${Buffer.from(read(pointer, length))
        .toString('utf8')
        .slice(0, LOG_CHARS - log.length)}\n`
  },
}

function guestOf({ exports }: WebAssembly.Instance): Guest {
  const { memory, alloc, execute } = exports
  const fuel = exports[FUEL]
  const refused = exports[REFUSED]
  if (!(memory instanceof WebAssembly.Memory)) throw new ContractProblem('the guest exports no memory')
  if (typeof alloc !== 'function' || typeof execute !== 'function')
    throw new ContractProblem('the guest exports no alloc and execute')
  if (!(fuel instanceof WebAssembly.Global) || !(refused instanceof WebAssembly.Global))
    throw new ContractProblem('the guest has no counter')
  return {
    memory,
    get fuel() {
      return BigInt(fuel.value)
    },
    set fuel(units) {
      fuel.value = units
    },
    get refused() {
      return Number(refused.value) === 1
    },
    alloc(size) {
      const pointer: unknown = alloc(size)
      if (typeof pointer !== 'number') throw new ContractProblem('alloc gives no pointer')
      return pointer >>> 0
    },
    execute(pointer, length) {
      const packed: unknown = execute(pointer, length)
      if (typeof packed !== 'bigint') throw new ContractProblem('execute gives no pointer and length (i64)')
      return BigInt.asUintN(64, packed)
    },
  }
}

function run(): Uint8Array {
  const compiled = new WebAssembly.Module(meter(data.module, data) as Uint8Array<ArrayBuffer>)
  guest = guestOf(new WebAssembly.Instance(compiled, { [HOST]: host }))
  guest.fuel = data.fuel
  const answer = guest.execute(give(data.input), data.input.byteLength)
  const length = Number(answer & 0xffff_ffffn)
  if (length > data.outputBytes)
    throw new ContractProblem(`the answer has ${length} bytes; at most ${data.outputBytes} are allowed`)
  return read(Number(answer >> 32n), length).slice()
}

function outcomeOf(error: unknown): GuestOutcome {
  if (error instanceof Empty || (guest && guest.fuel < 0n)) return 'fuel_exhausted'
  if (error instanceof ModuleProblem) return /pages of memory/.test(error.message) ? 'memory_limit' : 'abi'
  if (
    error instanceof ContractProblem ||
    error instanceof WebAssembly.CompileError ||
    error instanceof WebAssembly.LinkError
  )
    return 'abi'
  if (guest?.refused === true || (error instanceof RangeError && /memory/i.test(error.message))) return 'memory_limit'
  return 'trap'
}

function end(outcome: GuestOutcome, output: Uint8Array, message: string): void {
  // Below zero all of it was used: by how much the last block would have exceeded it does not matter.
  const left = guest ? guest.fuel : data.fuel
  port?.postMessage({
    type: 'end',
    outcome,
    output,
    message,
    fuelUsed: left < 0n ? data.fuel : data.fuel - left,
    log,
  } satisfies GuestMessage)
}

try {
  end('done', run(), '')
} catch (error) {
  const outcome = outcomeOf(error)
  const message = error instanceof Error ? error.message.slice(0, 500) : 'unknown'
  end(
    outcome,
    new Uint8Array(0),
    outcome === 'fuel_exhausted'
      ? 'the fuel is used up'
      : outcome === 'memory_limit' && message === 'unreachable'
        ? 'it ended when its memory could not grow any more'
        : message,
  )
}
