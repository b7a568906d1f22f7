import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** The end of a pipe that the parent process opened for this one. */
export function openInherited(fd: number): Duplex {
  return new Socket({ fd, readable: true, writable: true })
}
