/** Numbers of system calls on the architectures the filter is written for, and the mark the kernel gives each. */
interface Architecture {
  readonly mark: number
  /** From here on, x86-64 counts calls of another kind. */
  readonly other: number | undefined
  readonly socket: number
  readonly ioctl: number
  readonly seccomp: number
  /** io_uring opens sockets past the filter; kernel keyrings, BPF and the like know no namespaces. */
  readonly denied: readonly number[]
}
const architectures: Readonly<Record<string, Architecture>> = {
  x64: {
    mark: 0xc000_003e,
    other: 0x4000_0000,
    socket: 41,
    ioctl: 16,
    seccomp: 317,
    denied: [425, 426, 427, 248, 249, 250, 321, 323, 298, 246, 320],
  },
  arm64: {
    mark: 0xc000_00b7,
    other: undefined,
    socket: 198,
    ioctl: 29,
    seccomp: 277,
    denied: [425, 426, 427, 217, 218, 219, 280, 282, 241, 104, 294],
  },
}

const AF_UNIX = 1
const AF_INET = 2
const AF_INET6 = 10
const AF_NETLINK = 16
/** Families that a network namespace keeps apart. Others, such as the sockets of virtual machines, lead past it. */
export const namespacedFamilies: readonly number[] = [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK]

const EPERM = 1
const ENOSYS = 38
const EAFNOSUPPORT = 97
const TIOCSTI = 0x5412
const TIOCLINUX = 0x541c

const LOAD = 0x20
const EQUAL = 0x15
const AT_LEAST = 0x35
const RETURN = 0x06
const ALLOW = 0x7fff_0000
const REFUSE = 0x0005_0000

type Step = readonly [code: number, yes: number, no: number, value: number]

/**
 * A filter in classic BPF, as seccomp(2) takes it: sockets of these families only, no typing into a terminal, and
 * none of the calls that
 * lead past namespaces. `undefined` on an architecture it is not written for.
 */
export function socketFilter(families: readonly number[], arch: string = process.arch): Buffer | undefined {
  const found = architectures[arch]
  if (!found) return undefined
  const { mark, other, socket, ioctl, denied } = found
  const load = (offset: number): Step => [LOAD, 0, 0, offset]
  const answer = (value: number): Step => [RETURN, 0, 0, value]
  /** Goes through the steps when the loaded value is this one, past them otherwise. */
  const when = (value: number, steps: readonly Step[]): readonly Step[] => [[EQUAL, 0, steps.length, value], ...steps]
  const steps: readonly Step[] = [
    load(4),
    [EQUAL, 1, 0, mark],
    answer(REFUSE | ENOSYS),
    load(0),
    ...(other === undefined ? [] : [[AT_LEAST, 0, 1, other] as Step, answer(REFUSE | ENOSYS)]),
    ...denied.flatMap((number) => when(number, [answer(REFUSE | EPERM)])),
    ...when(socket, [
      load(16),
      ...families.flatMap((family) => when(family, [answer(ALLOW)])),
      answer(REFUSE | EAFNOSUPPORT),
    ]),
    ...when(ioctl, [load(24), ...[TIOCSTI, TIOCLINUX].flatMap((name) => when(name, [answer(REFUSE | EPERM)]))]),
    answer(ALLOW),
  ]
  const bytes = Buffer.alloc(steps.length * 8)
  for (const [at, [code, yes, no, value]] of steps.entries()) {
    bytes.writeUInt16LE(code, at * 8)
    bytes.writeUInt8(yes, at * 8 + 2)
    bytes.writeUInt8(no, at * 8 + 3)
    bytes.writeUInt32LE(value, at * 8 + 4)
  }
  return bytes
}

/** The number of seccomp(2) on this architecture. */
export function seccompNumber(arch: string = process.arch): number | undefined {
  return architectures[arch]?.seccomp
}
