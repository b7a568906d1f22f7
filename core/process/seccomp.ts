/** System call numbers on the supported architectures, and the AUDIT_ARCH constant of each. */
interface Architecture {
  readonly auditArch: number
  /** x86-64 numbers the calls of the x32 ABI from here. */
  readonly x32: number | undefined
  readonly socket: number
  readonly ioctl: number
  readonly seccomp: number
  /** io_uring opens sockets that the filter does not see; keyrings, BPF and similar calls ignore namespaces. */
  readonly denied: readonly number[]
}
const architectures: Readonly<Record<string, Architecture>> = {
  x64: {
    auditArch: 0xc000_003e,
    x32: 0x4000_0000,
    socket: 41,
    ioctl: 16,
    seccomp: 317,
    denied: [425, 426, 427, 248, 249, 250, 321, 323, 298, 246, 320],
  },
  arm64: {
    auditArch: 0xc000_00b7,
    x32: undefined,
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
/** Socket families that a network namespace isolates. Others, such as AF_VSOCK, bypass it. */
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
 * A filter in classic BPF, as seccomp(2) expects it: only sockets of these families, no input into a terminal, and none
 * of the calls that bypass namespaces. `undefined` on an unsupported architecture.
 */
export function socketFilter(families: readonly number[], arch: string = process.arch): Buffer | undefined {
  const found = architectures[arch]
  if (!found) return undefined
  const { auditArch, x32, socket, ioctl, denied } = found
  const load = (offset: number): Step => [LOAD, 0, 0, offset]
  const answer = (value: number): Step => [RETURN, 0, 0, value]
  /** Runs the steps if the loaded value equals this one, and skips them otherwise. */
  const when = (value: number, steps: readonly Step[]): readonly Step[] => [[EQUAL, 0, steps.length, value], ...steps]
  const steps: readonly Step[] = [
    load(4),
    [EQUAL, 1, 0, auditArch],
    answer(REFUSE | ENOSYS),
    load(0),
    ...(x32 === undefined ? [] : [[AT_LEAST, 0, 1, x32] as Step, answer(REFUSE | ENOSYS)]),
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
