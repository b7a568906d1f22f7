import { randomUUID } from 'node:crypto'
import * as v from 'valibot'
import { definePlugin } from 'svc/sdk'
import { Journal } from './contract.ts'
import { migrations } from './migrations.ts'
import { JournalService } from './service.ts'
import { JournalStore } from './store.ts'

export default definePlugin({
  name: 'journal',
  version: '1.0.0',
  config: v.object({}),
  provides: { journal: Journal },
  migrations,
  setup({ db }) {
    return { journal: new JournalService(new JournalStore(db), randomUUID(), () => new Date().toISOString()) }
  },
})
