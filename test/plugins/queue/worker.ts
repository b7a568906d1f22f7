/**
 * A daemon with nothing but a queue, in a process of its own: `worker.ts ADDRESS DRIVER`. Says `ready`, and the id of
 * each job that it begins; what it has done is a row in `queue_receipt`.
 */
import { createConsola } from 'consola'
import { openDatabase } from '../../../core/storage/open.ts'
import { startWorker } from './running.ts'

const [, , url = '', driver = ''] = process.argv
const database = await openDatabase({
  url,
  log: createConsola({ level: 0 }),
  broadcastKey: async () => Buffer.alloc(32, 'key of tests'),
})
await startWorker(database, { driver, began: (id) => process.stdout.write(`${id}\n`) })
process.stdout.write('ready\n')
