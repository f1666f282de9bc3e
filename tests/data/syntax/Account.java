package bank;

import java.util.ArrayList;
import java.util.List;

/** An account and its history. */
public final class Account implements Comparable<Account> {
    private static final int LIMIT = 1_000;
    private final String owner;
    private final List<Long> history = new ArrayList<>();
    private long balance;

    public Account(String owner, long opening) {
        this.owner = owner;
        this.balance = opening;
    }

    public synchronized boolean withdraw(long amount) throws IllegalStateException {
        if (amount <= 0 || amount > LIMIT) {
            throw new IllegalArgumentException("amount: " + amount);
        }
        for (int tries = 0; tries < 3; tries++) {
            if (balance >= amount) {
                balance -= amount;
                history.add(-amount);
                return true;
            }
        }
        return false;
    }

    public long average() {
        return history.isEmpty() ? 0L : history.stream().mapToLong(value -> value).sum() / history.size();
    }

    @Override
    public int compareTo(Account other) {
        return Long.compare(this.balance, other.balance);
    }
}
