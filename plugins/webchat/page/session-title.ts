import type { SessionItem } from './wire.ts'

export function titleOf({ title }: Pick<SessionItem, 'title'>): string {
  return title === '' ? 'No messages yet' : title
}
