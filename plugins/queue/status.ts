import type { LaneStatus } from './service.ts'

/** The lanes as `/api/queue/status` shows them. */
export function lanesOf(lanes: readonly LaneStatus[]) {
  return lanes.map(({ lane, active, running, capacity, waiting, dead, oldestMs, throughput }) => ({
    lane,
    active,
    running,
    capacity,
    depth: waiting,
    dead,
    oldest_secs: Math.round(oldestMs / 1000),
    throughput: throughput.done_minute,
    done_last_hour: throughput.done_hour,
    failed_last_minute: throughput.failed_minute,
    failed_last_hour: throughput.failed_hour,
  }))
}

/** The same of all lanes together. */
export function totalOf(lanes: readonly LaneStatus[]) {
  const sum = (read: (lane: ReturnType<typeof lanesOf>[number]) => number): number =>
    lanesOf(lanes).reduce((total, lane) => total + read(lane), 0)
  return {
    depth: sum(({ depth }) => depth),
    running: sum(({ running }) => running),
    dead: sum(({ dead }) => dead),
    oldest_secs: Math.max(0, ...lanesOf(lanes).map(({ oldest_secs: oldest }) => oldest)),
    throughput: sum(({ throughput }) => throughput),
    done_last_hour: sum(({ done_last_hour: done }) => done),
    failed_last_minute: sum(({ failed_last_minute: failed }) => failed),
    failed_last_hour: sum(({ failed_last_hour: failed }) => failed),
  }
}
