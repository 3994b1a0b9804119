/**
 * What happened to one group's records of one topic since the broker started. They outlive the
 * dispatcher, which is made anew now and then; counts are of records unless they say otherwise.
 */
export class DeliveryCounters {
  granted = 0;
  /** Those of them that somebody had been sent before. */
  redelivered = 0;
  /** By a commit, or by proof with `delivery.ack=poll`. */
  finished = 0;
  /** Given back by a member, for whatever reason. */
  returned = 0;
  /** Failed deliveries that were charged to a record. */
  charged = 0;
  /** Given up after too many attempts. */
  deadLetters = 0;
  /** Commits beyond all that the member was given. */
  commitsBeyond = 0;
}
