import { z } from "zod";

export const manageActions = ["pull", "remove", "load", "unload"] as const;
export type ManageAction = (typeof manageActions)[number];

/** The body of a `manage` job: the action on the model that the job's head names. */
export const manageBody = z.object({ action: z.enum(manageActions) });
export type ManageBody = z.infer<typeof manageBody>;

/** Progress of a `manage` job, one record each. The byte counts cover the current download, where the runtime reports them. */
export const manageProgress = z.object({
  status: z.string().max(500),
  completedBytes: z.int().nonnegative().optional(),
  totalBytes: z.int().nonnegative().optional(),
});
export type ManageProgress = z.infer<typeof manageProgress>;
