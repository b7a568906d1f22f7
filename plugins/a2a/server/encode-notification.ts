import { V1PushNotificationSerializer } from '@a2a-js/sdk/server'
import { V03PushNotificationSerializer } from '@a2a-js/sdk/compat/v0_3/server'
import type { Task } from './tasks.ts'
import { taskEvent } from './wire.ts'

/** The body that tells a client of its task, in the format of the protocol it spoke. */
export function encodeNotification(task: Task, version: '0.3' | '1.0') {
  const serializer = version === '0.3' ? new V03PushNotificationSerializer() : new V1PushNotificationSerializer()
  return serializer.serialize(taskEvent(task))
}
